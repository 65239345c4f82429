"""``partiscope dashboard``: the web page."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import typer

from broker.host_name import address_text
from control.model.command_line import CommandFlags, cluster_flag, use_flags
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import Bootstrap, Bus, Data, ReadOnly, Store, target_with
from partiscope.installation import find_installation
from partiscope.running import say
from partiscope.settings import load_settings

if TYPE_CHECKING:
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
    """Serve the web page until SIGTERM; only loopback names are answered."""
    from control.views.paths import PathError, parse_path

    try:
        view = str(parse_path(path)) if path else ""
    except PathError as error:
        raise CommandError(f"{error}. Try overview or topics.", Exit.WRONG_USE) from error
    from dashboard.app import serve
    from dashboard.server.cluster_routing import chosen_cluster
    from dashboard.settings import DashboardSettings

    target = target_with(data=data, bootstrap=bootstrap, bus=bus, store=store, read_only=read_only)
    first = target.watched.name

    def flags() -> CommandFlags:
        """Flags that name the cluster of the asking page."""
        name = chosen_cluster.get()
        is_first = name in ("", first)
        return target.flags if is_first else replace(target.flags, cluster=cluster_flag(name))

    use_flags(flags)
    settings = load_settings()
    where = settings.dashboard
    page = DashboardSettings(
        tour=target.tour,
        store=target.store,
        clusters=target.clusters,
        bus=target.bus,
        host=host or where.host,
        port=port or where.port,
        limits=settings.prometheus.limits,
    )
    query = f"?{urlencode({'cluster': first})}" if page.names else ""
    link = f"{view and '/'}{view}{query if '?' not in view else query.replace('?', '&')}"
    try:
        serve(page, on_ready=lambda address: say(f"ready {address}{link}"))
    except OSError as error:
        raise CommandError(
            f"cannot listen on {address_text(page.host, page.port)}: {error.strerror}. "
            f"{_page_there(data, page, link)}Choose another --port."
        ) from error


def _page_there(data: Path | None, page: "DashboardSettings", link: str) -> str:
    """The view on the page that `up` has there already."""
    found = find_installation(data or load_settings().data)
    address = f"http://{address_text(page.host, page.port)}"
    return (
        f"The page of `up` is there: {address}{link}. " if found and found.page == address else ""
    )
