"""``partiscope collect``: samples of another cluster into the metrics topic of the bus."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Bus,
    CommandConfig,
    Data,
    known_bus,
    note,
    settings_with,
)
from partiscope.identity import watched_here
from partiscope.running import say


def collect(
    *,
    bootstrap: Bootstrap = None,
    bus: Bus = None,
    command_config: CommandConfig = None,
    interval_ms: Annotated[
        int | None, typer.Option(min=100, help="Between samples of a small cluster.")
    ] = None,
    data: Data = None,
) -> None:
    """Sample a Kafka cluster by its protocol alone until SIGTERM; nothing is changed there."""
    from control.collector.collector import CollectorSettings
    from control.collector.process import run_collector
    from control.kafka.connection.connections import settings_of
    from control.operations.catalogue import NEEDED_RIGHTS

    settings = settings_with(data=data, bootstrap=bootstrap, command_config=command_config)
    watched = settings.watched()
    if watched is None:
        raise CommandError(
            "there is no cluster to collect from: name it with --bootstrap HOST:PORT or "
            "--cluster NAME. The bundled brokers report by themselves.",
            Exit.WRONG_USE,
        )
    # What `up` watches there, and no cluster that took its address since.
    ids = {it.bootstrap: it.cluster_id for it in watched_here(settings) if it.is_collected}
    collector = CollectorSettings(
        watched=settings_of(watched.bootstrap, cluster_id=ids.get(watched.bootstrap) or ""),
        bus=settings_of(bus or known_bus(settings)),
        interval_ms=interval_ms or watched.collect.interval_ms,
        broker_rows_per_s=watched.collect.broker_rows_per_s,
        broker_times_per_s=watched.collect.broker_times_per_s,
        needed_rights=NEEDED_RIGHTS,
    )
    asyncio.run(_until_signal(run_collector(collector, say=note, on_ready=say)))


async def _until_signal(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
