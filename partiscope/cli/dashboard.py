"""``partiscope dashboard``: the web page."""

from typing import Annotated

import typer

from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import Bootstrap, Data, ReadOnly, Store, settings_with
from partiscope.installation import fleet
from partiscope.running import say


def dashboard(
    *,
    path: Annotated[
        str, typer.Argument(help="View to open, e.g. topics/orders/partitions/3.")
    ] = "",
    bootstrap: Bootstrap = None,
    store: Store = None,
    bus: Annotated[str | None, typer.Option(help="HOST:PORT,… of the operations bus.")] = None,
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
    from dashboard.settings import DashboardSettings

    settings = settings_with(data=data, bootstrap=bootstrap, read_only=read_only)
    page = DashboardSettings(
        store=store or settings.store,
        clusters=fleet(settings),
        bus=bus or settings.bundled_bootstrap,
        host=host or settings.dashboard.host,
        port=port or settings.dashboard.port,
    )
    try:
        serve(page, on_ready=lambda address: say(f"ready {address}{view and '/'}{view}"))
    except OSError as error:
        raise CommandError(
            f"cannot listen on {page.host}:{page.port}: {error.strerror}. Choose another --port."
        ) from error
