"""Runs the collector for good: a bus that is away is waited for, a first refusal is told."""

import asyncio
from collections.abc import Callable
from typing import Final

from control.collector.collector import Collector, CollectorSettings
from control.collector.delivery import Delivery
from control.kafka.connection.wire import explain_unreachable
from control.kafka.errors import KafkaPortError, UnreachableError
from control.model.units import counted

BUS_RETRY_S: Final = 2.0

Say = Callable[[str], None]


async def run_collector(settings: CollectorSettings, *, say: Say, on_ready: Say) -> None:
    """Collect until cancelled; ``on_ready`` is told once, when every live broker was sampled.

    :raises KafkaPortError: the watched cluster cannot be reached when it is first asked.
    """
    await explain_unreachable(settings.watched)
    while True:
        try:
            async with Delivery(settings.bus) as delivery:
                await _collect(Collector(settings, delivery, say), on_ready)
        except UnreachableError as error:
            say(f"the bus: {error}; trying again")
        except KafkaPortError as error:
            say(f"the bus refuses: {error}; trying again")
        await asyncio.sleep(BUS_RETRY_S)


async def _collect(collector: Collector, on_ready: Say) -> None:
    announcing = asyncio.create_task(_announce(collector, on_ready))
    try:
        await collector.run()
    finally:
        announcing.cancel()
        await asyncio.gather(announcing, return_exceptions=True)


async def _announce(collector: Collector, on_ready: Say) -> None:
    await collector.is_complete.wait()
    image = collector.image
    on_ready(
        f"ready cluster {image.cluster_id}: {counted(len(image.brokers), 'broker')}, "
        f"{counted(len(image.partitions), 'partition')}"
    )
