"""``partiscope dashboard``: the web page."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import typer

from broker.host_name import address_text
from control.model.command_line import CommandFlags, cluster_flag, use_flags
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Bus,
    Data,
    ReadOnly,
    Store,
    settings_at,
    target_with,
)
from partiscope.installation import find_installation
from partiscope.running import say
from partiscope.settings import Settings, load_settings

if TYPE_CHECKING:
    from dashboard.server.login.login_check import LoginSettings
    from dashboard.server.tls import CertificateFiles
    from dashboard.settings import DashboardSettings


def dashboard(
    *,
    path: Annotated[
        str, typer.Argument(help="View to open, e.g. topics/orders/partitions/3.")
    ] = "",
    bootstrap: Bootstrap = None,
    store: Store = None,
    bus: Bus = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="Port.")] = None,
    data: Data = None,
    read_only: ReadOnly = False,
) -> None:
    """Serve the web page until SIGTERM; beyond loopback only with logins (`partiscope users`)."""
    from control.views.paths import PathError, parse_path

    try:
        view = str(parse_path(path)) if path else ""
    except PathError as error:
        raise CommandError(f"{error}. Try overview or topics.", Exit.WRONG_USE) from error
    from dashboard.app import serve
    from dashboard.server.cluster_routing import chosen_cluster
    from dashboard.server.tls import CertificateError
    from dashboard.settings import DashboardSettings, UnguardedError

    target = target_with(data=data, bootstrap=bootstrap, bus=bus, store=store, read_only=read_only)
    first = target.watched.name

    def flags() -> CommandFlags:
        """Flags that name the cluster of the asking page."""
        name = chosen_cluster.get()
        is_first = name in ("", first)
        return target.flags if is_first else replace(target.flags, cluster=cluster_flag(name))

    use_flags(flags)
    settings = settings_at(data)
    where = settings.dashboard
    page = DashboardSettings(
        tour=target.tour,
        store=target.store,
        clusters=target.clusters,
        bus=target.bus,
        host=host or where.host,
        port=port or where.port,
        allowed_hosts=where.allowed_hosts,
        certificate=_certificate(settings),
        limits=settings.prometheus.limits,
        logins=_logins(settings),
        tokens=settings.tokens,
    )
    query = f"?{urlencode({'cluster': first})}" if page.names else ""
    link = f"{view and '/'}{view}{query if '?' not in view else query.replace('?', '&')}"
    try:
        serve(page, on_ready=lambda address: say(f"ready {address}{link}"))
    except (UnguardedError, CertificateError) as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error
    except OSError as error:
        raise CommandError(
            f"cannot listen on {address_text(page.host, page.port)}: {error.strerror}. "
            f"{_page_there(data, page, link)}Choose another --port."
        ) from error


def _certificate(settings: Settings) -> "CertificateFiles | None":
    from dashboard.server.tls import CertificateFiles

    chain = settings.dashboard.certificate
    if chain is None:
        return None
    return CertificateFiles(certificate=chain, key=settings.dashboard.key or chain)


def _logins(settings: Settings) -> "LoginSettings | None":
    """None: no users are declared.

    :raises CommandError: a proxy is trusted, and no user may come by it.
    """
    from dashboard.server.login.login_check import LoginSettings

    users, access = settings.users_file, settings.access
    if not users.is_there:
        if access.proxy_header is None:
            return None
        raise CommandError(
            f"access.proxy_header is set, and there is no users file {users.path}: nobody has a "
            "role. Add those who come by the proxy: "
            "`partiscope users add NAME --role viewer --no-password`",
            Exit.WRONG_USE,
        )
    users.users()  # one that cannot be read is told at the start
    return LoginSettings(
        users=users,
        lasts_s=access.session_s,
        proxy_header=access.proxy_header or "",
        proxy_address=access.proxy_address or "",
    )


def _page_there(data: Path | None, page: "DashboardSettings", link: str) -> str:
    """The view on the page that `up` has there already."""
    found = find_installation(data or load_settings().data)
    address = page.url(page.port)
    return (
        f"The page of `up` is there: {address}{link}. " if found and found.page == address else ""
    )
