"""Runs the process that delivers alerts: waits for the bus and for its turn, then delivers."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Final

from control.alert_delivery.process import AlertProcess, AlertSettings
from control.kafka.connection.connections import settings_of
from control.kafka.errors import KafkaPortError
from control.model.watched_cluster import WatchedCluster
from control.operations.bus.alert_records import ALERTS, AlertsTopic
from control.operations.bus.topics import Bus
from control.operations.executor.ownership import Ownership
from control.views.snapshots.feed import SnapshotFeed, feed_of
from control.views.snapshots.process_memory import be_small, take_turns
from control.views.snapshots.store import StoreReader

GROUP_ID: Final = "__partiscope_alerts"
"""Whoever it assigns the alerts topic delivers; further processes wait."""
RETRY_S: Final = 2.0
TURN_S: Final = 3_600.0

Say = Callable[[str], None]


def run(
    settings: AlertSettings,
    clusters: Sequence[WatchedCluster],
    *,
    store: str,
    bus: str,
    say: Say,
) -> int:
    """Deliver until SIGTERM or SIGINT, or, without any rule, until open alerts are told as
    resolved; then exit status 0."""
    take_turns()
    be_small()
    reader = StoreReader(store)
    feeds = {it.name: feed_of(reader, it, bus=bus) for it in clusters}
    for feed in feeds.values():
        feed.start()
    try:
        return asyncio.run(_until_signalled(settings, feeds, bus, say))
    finally:
        for feed in feeds.values():
            feed.stop()


async def _until_signalled(
    settings: AlertSettings, feeds: dict[str, SnapshotFeed], address: str, say: Say
) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(_serve(settings, feeds, address, say))
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, task.cancel)
    await asyncio.gather(task, return_exceptions=True)
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
    return 0


async def _serve(
    settings: AlertSettings, feeds: dict[str, SnapshotFeed], address: str, say: Say
) -> None:
    rules, failure = len(settings.rules), ""
    say(f"ready to deliver alerts of {rules:,} rules to {len(settings.receivers)} receivers")
    while True:
        try:
            if await _had_turn(settings, feeds, address, say) and not settings.rules:
                return
        except KafkaPortError as error:
            if str(error) != failure:
                failure = str(error)
                say(f"alerts wait for the bus: {failure}")
        await asyncio.sleep(RETRY_S)


async def _had_turn(
    settings: AlertSettings, feeds: dict[str, SnapshotFeed], address: str, say: Say
) -> bool:
    """Whether this process was the one that delivers, for a while."""
    async with Bus(settings_of(address)) as bus:
        topic = AlertsTopic(bus)
        await topic.ensure()
        async with Ownership(
            bus.settings, bus.unreadable, partition=ALERTS, group_id=GROUP_ID
        ) as turn:
            if not turn.is_owner and not await turn.wait_until_owner(TURN_S):
                return False
            process = AlertProcess(settings, feeds, topic, is_owner=lambda: turn.is_owner)
            await process.load()
            say("delivering")
            await process.run()
            return True
