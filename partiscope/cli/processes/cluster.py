"""``partiscope cluster``: only the bundled cluster."""

import typer

from partiscope.bundled.founded_cluster import LayoutError
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Brokers,
    Data,
    FirstId,
    Override,
    Port,
    Rejoin,
    Secure,
    cluster_with,
    settings_with,
)
from partiscope.installation import Installation
from partiscope.layout import ClusterLayout, hold, parse_overrides
from partiscope.running import reached, run_until_signal, start_cluster


def cluster(
    *,
    brokers: Brokers = None,
    port: Port = None,
    data: Data = None,
    first_id: FirstId = None,
    override: Override = None,
    rejoin: Rejoin = None,
    secure: Secure = None,
) -> None:
    """Run N broker processes; prints `ready HOST:PORT,…` when all are registered."""
    settings = settings_with(data=data, may_create=True)
    chosen = cluster_with(
        settings.cluster,
        brokers=brokers,
        port=port,
        secure=secure,
        first_id=first_id,
        overrides=_overrides(override) if override else None,
    )
    hold(settings.data)
    layout = ClusterLayout.prepare(settings.data, chosen, rejoin=rejoin or ())
    layout.check_ports()
    Installation(bus=layout.bootstrap, bus_config=layout.bus_config).save(settings.data)
    settings = reached(settings, layout)
    raise typer.Exit(
        run_until_signal(
            lambda supervisor: start_cluster(supervisor, layout, settings),
            outages_in=settings.data,
        )
    )


def _overrides(pairs: list[str]) -> dict[str, str]:
    try:
        return parse_overrides(pairs)
    except LayoutError as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error
