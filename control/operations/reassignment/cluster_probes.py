"""Asked shortly before a move: what producers write, which groups read, how long followers wait,
which brokers are throttled already."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from control.kafka.errors import KafkaPortError
from control.kafka.ports import AdminPort, ConfigEntry, ConfigResource, ConfigScope, GroupsPort
from control.model.ids import TopicPartition
from control.move.throttle import RATES, brokers_between
from control.operations.reassignment.facts import sizes_of
from control.operations.reassignment.producer_latency_check import FETCH_BACKOFF, FIRST_BACKOFF
from planner.proposal import PartitionChange

PRODUCED_OVER_S: Final = 1.0
"""How long growth is watched: two readings of the log directories lie this far apart."""
GROUPS_MAX: Final = 200
GROUPS_TOGETHER: Final = 8
READERS_WITHIN_S: Final = 3.0


async def measure_produced(
    admin: AdminPort, changes: Iterable[PartitionChange], *, over_s: float = PRODUCED_OVER_S
) -> dict[TopicPartition, float]:
    """Bytes per second that the logs of all partitions grow by whose topics move. A log that shrank
    meanwhile (retention) and a cluster that does not tell sizes answer nothing: the rate is
    unknown."""
    try:
        names = sorted({change.topic for change in changes})
        topics = await admin.topics(names, leaves_out_unknown=True)
    except KafkaPortError:
        return {}
    keys = (partition.key for topic in topics for partition in topic.partitions)
    return await measure_growth(admin, keys, over_s=over_s)


async def measure_growth(
    admin: AdminPort, wanted: Iterable[TopicPartition], *, over_s: float = PRODUCED_OVER_S
) -> dict[TopicPartition, float]:
    """measure_produced, of any partitions."""
    keys = sorted(wanted)
    if not keys:
        return {}
    loop = asyncio.get_running_loop()
    try:
        first = sizes_of(await admin.log_dirs(partitions=keys))
        first_s = loop.time()
        await asyncio.sleep(over_s)
        second = sizes_of(await admin.log_dirs(partitions=keys))
        span_s = loop.time() - first_s
    except KafkaPortError:
        return {}
    return {
        key: (second[key] - first[key]) / span_s
        for key in keys
        if key in first and key in second and second[key] >= first[key]
    }


async def read_readers(
    groups: GroupsPort, changes: Iterable[PartitionChange]
) -> Mapping[str, frozenset[TopicPartition]]:
    """The groups that have committed in moving partitions: of the first GROUPS_MAX groups, as
    many as answer in time."""
    moving = frozenset(change.key for change in changes)
    found: dict[str, frozenset[TopicPartition]] = {}
    slots = asyncio.Semaphore(GROUPS_TOGETHER)

    async def ask(group_id: str) -> None:
        async with slots:
            with contextlib.suppress(KafkaPortError):
                read = moving & (await groups.committed_offsets(group_id)).keys()
                if read:
                    found[group_id] = frozenset(read)

    with contextlib.suppress(KafkaPortError, TimeoutError):
        async with asyncio.timeout(READERS_WITHIN_S):
            listed = sorted(group.group_id for group in await groups.list_groups())
            await asyncio.gather(*map(ask, listed[:GROUPS_MAX]))
    return found


async def read_fetch_backoffs(
    admin: AdminPort, changes: Iterable[PartitionChange]
) -> dict[int, int]:
    """Milliseconds after which followers of what moves ask again, by broker that is up; empty
    where one of them does not tell."""
    follow = {broker for change in changes for broker in change.after}
    told = await _broker_configs(admin, follow, (FETCH_BACKOFF, FIRST_BACKOFF))
    waits = {
        broker: [int(entry.value) for entry in entries if entry.value is not None]
        for broker, entries in told.items()
    }
    return {broker: min(found) for broker, found in waits.items() if found}


async def read_standing_rates(
    admin: AdminPort, changes: Iterable[PartitionChange], *, except_on: Collection[int] = ()
) -> dict[int, dict[str, int]]:
    """Throttle rates that brokers between which data moves have, but for these and those that are
    down; empty where one of them does not tell."""
    asked = brokers_between(changes).difference(except_on)
    told = await _broker_configs(admin, asked, RATES)
    rates = {
        broker: {e.name: int(e.value) for e in entries if e.value and not e.is_default}
        for broker, entries in told.items()
    }
    return {broker: found for broker, found in rates.items() if found}


async def _broker_configs(
    admin: AdminPort, brokers: Collection[int], names: tuple[str, ...]
) -> dict[int, tuple[ConfigEntry, ...]]:
    """Configs of brokers that are up; empty where one of them does not tell."""
    try:
        alive = {broker.id for broker in (await admin.describe_cluster()).brokers}
        asked = sorted(alive.intersection(brokers))
        told = await admin.describe_many_configs(
            [ConfigResource(scope=ConfigScope.BROKER, name=str(broker)) for broker in asked], names
        )
    except KafkaPortError:
        return {}
    return {int(resource.name): entries for resource, entries in told.items()}
