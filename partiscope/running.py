"""Runs an installation in the foreground: start in stages, wait for the end, stop cleanly."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from control.model.command_line import command
from control.views.printable import paragraph
from partiscope import processes
from partiscope.broker_stop_server import serving_outages
from partiscope.bundled.secure_cluster import ADMIN
from partiscope.identity import bind
from partiscope.layout import ClusterLayout
from partiscope.settings import Settings
from partiscope.supervisor import PartFailedError, Supervisor

COLLECTORS_ALONE_S: Final = 3.0
"""So long they have the machine to themselves, before the page is loaded."""

Stage = Callable[[Supervisor], Awaitable[str]]


def say(text: str) -> None:
    """One line to the operator, at once."""
    sys.stdout.write(f"{paragraph(text)}\n")
    sys.stdout.flush()


def run_until_signal(stage: Stage, *, outages_in: Path | None = None, teaches: bool = True) -> int:
    """Run ``stage`` (which starts the parts), then keep them running until SIGINT or SIGTERM.

    ``outages_in``: a data directory; who asks on the socket there may stop one of the brokers: for
    good, or, where it ``teaches``, for a while.

    Returns:
        0 after SIGTERM, 130 after Ctrl-C.

    Raises:
        PartFailedError: a part could not start; everything is stopped again.
    """
    return asyncio.run(_run(stage, outages_in, teaches=teaches))


async def _run(stage: Stage, outages_in: Path | None, *, teaches: bool) -> int:
    supervisor = Supervisor(say)
    listening = (
        serving_outages(supervisor, outages_in, teaches=teaches) if outages_in else nullcontext()
    )
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    for signum, status in ((signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)):
        loop.add_signal_handler(signum, _end_with, ended, status)
    starting = asyncio.ensure_future(stage(supervisor))
    awaited: set[asyncio.Future[Any]] = {starting, ended}
    failed: PartFailedError | None = None
    try:
        async with listening:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                say(starting.result())
                await ended
    except* PartFailedError as failures:
        failed = _first_of(failures)  # raised from here it would come as a group again
    finally:
        starting.cancel()
        if ended.done():
            say("stopping")
        await supervisor.stop()
    if failed is not None:
        raise failed
    return ended.result()


def _first_of(failures: BaseExceptionGroup[PartFailedError]) -> PartFailedError:
    """The first task that ends, of parts that were started in stages."""
    first = failures.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first


def _end_with(ended: asyncio.Future[int], status: int) -> None:
    if not ended.done():
        ended.set_result(status)


def reached(settings: Settings, layout: ClusterLayout) -> Settings:
    """Settings with which this process reaches the bundled brokers, as their admin where they ask
    for a login."""
    if layout.bus_config is None:
        return settings
    update = {"bus": layout.bootstrap, "bus_config": Path(layout.bus_config)}
    settings = settings.model_copy(update=update)
    bind(settings, None)
    return settings


async def start_cluster(supervisor: Supervisor, layout: ClusterLayout, settings: Settings) -> str:
    """Stage of ``partiscope cluster``: the brokers alone."""
    await _start_brokers(supervisor, layout, settings)
    return f"ready {layout.bootstrap}"


async def _start_brokers(supervisor: Supervisor, layout: ClusterLayout, settings: Settings) -> None:
    """All of them; those left out are forgotten, or they would count as down for ever."""
    await supervisor.start_and_wait(*processes.broker_parts(layout, settings.data))
    for node in layout.drained:
        say(f"broker {node.id}   drained: not started (--rejoin {node.id} starts it again)")
    joined = [str(node.id) for node in layout.nodes if not node.is_voter]
    if joined:
        voters = ", ".join(str(node.id) for node in layout.voters)
        say(f"metadata quorum: {voters}, as founded; without a vote: {', '.join(joined)}")
    if layout.secure is not None:
        await _grant(layout)
        say(f"logins in {layout.secure.folder}: commands take {ADMIN}.properties by themselves")
    if layout.left_out:
        await _forget(layout)


async def _grant(layout: ClusterLayout) -> None:
    """Each part's rights, at each start: a part of a newer release may need more."""
    from control.kafka.admin.access_entries import grant  # most starts need no Kafka client
    from control.kafka.admin.kafka_admin import KafkaAdmin
    from control.kafka.errors import KafkaPortError
    from partiscope.bundled.part_rights import part_rights

    try:
        async with KafkaAdmin.to(layout.bootstrap) as admin:
            await grant(admin.wire, list(part_rights()))
    except KafkaPortError as error:
        raise PartFailedError(
            f"rights of the parts are not granted: {error.reason}; {error.next_step}"
        ) from error


async def _forget(layout: ClusterLayout) -> None:
    from control.kafka.admin.kafka_admin import KafkaAdmin  # most starts need no Kafka client
    from control.kafka.errors import KafkaPortError

    try:
        async with KafkaAdmin.to(layout.bootstrap) as admin:
            for broker in layout.left_out:
                if await admin.unregister_broker(broker):
                    say(f"broker {broker}   left out: it holds nothing, and was unregistered")
    except KafkaPortError as error:
        say(f"brokers left out are still registered: {error.reason}; {error.next_step}")


async def start_everything(
    supervisor: Supervisor, layout: ClusterLayout, settings: Settings, *, with_demo: bool
) -> str:
    """Stage of ``partiscope up``: brokers first, then who reads figures, the page, who acts.

    Python takes half a second of CPU and more to load any of them, so what the first picture does
    not need waits until it is read, and what needs nobody at first until the page is there.
    """
    started_s = time.monotonic()
    bus = layout.bootstrap
    await _start_brokers(supervisor, layout, settings)
    acting = [processes.executor_part(settings, bus)]
    if settings.alerts.rules:
        acting.append(processes.alerts_part(settings, bus))
    if with_demo:
        acting.append(processes.demo_part(settings, bus))

    async def watch_show_act() -> None:
        async with asyncio.TaskGroup() as group:
            collectors = processes.collector_parts(settings, bus)
            watching = group.create_task(supervisor.start_and_wait(*collectors))
            await asyncio.wait({watching}, timeout=COLLECTORS_ALONE_S)
            group.create_task(supervisor.start_and_wait(processes.dashboard_part(settings, bus)))
        await supervisor.start_and_wait(*acting)

    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.start_and_wait(processes.metrics_part(settings, bus)))
        group.create_task(watch_show_act())
    page = settings.dashboard.url
    took_s = time.monotonic() - started_s
    seen = f"brokers {bus}"
    if settings.watching:
        seen = f"watching {' and '.join(settings.watching)}  bus {bus}"
    return (
        f"ready in {took_s:.0f} s: page {page}  {seen}\n"
        f"  terminal: {command('tui')}    headless: {command('status')}    end: Ctrl-C"
    )
