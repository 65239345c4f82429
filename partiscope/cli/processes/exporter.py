"""``partiscope exporter``: ``/metrics`` for Prometheus, without a page."""

from typing import Annotated

import typer

from broker.host_name import address_text
from partiscope.cli.shared.exits import CommandError
from partiscope.cli.shared.options import Bootstrap, Bus, Data, Store, target_with
from partiscope.running import say
from partiscope.settings import load_settings


def exporter(
    *,
    bootstrap: Bootstrap = None,
    store: Store = None,
    bus: Bus = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="Port.")] = None,
    data: Data = None,
) -> None:
    """Serve /metrics until SIGTERM, for names of the settings and of loopback; the page has it too.
    It changes nothing."""
    from dashboard.exporter import serve
    from dashboard.settings import DashboardSettings

    target = target_with(data=data, bootstrap=bootstrap, bus=bus, store=store, read_only=True)
    where = load_settings().prometheus
    settings = DashboardSettings(
        store=target.store,
        clusters=target.clusters,
        bus=target.bus,
        host=host or where.host,
        port=port or where.port,
        allowed_hosts=where.allowed_hosts,
        limits=where.limits,
    )
    try:
        serve(settings, on_ready=lambda address: say(f"ready {address}"))
    except OSError as error:
        raise CommandError(
            f"cannot listen on {address_text(settings.host, settings.port)}: {error.strerror}. "
            "Choose another --port, or a --host of this machine."
        ) from error
