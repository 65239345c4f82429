"""Reads of one group what the lists do not have, when somebody looks at it."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.admin.streams_topology import StreamsTopology
from control.kafka.errors import KafkaPortError
from control.kafka.ports import ConfigResource, ConfigScope, OffsetSpec, ShareOffset
from control.kafka.records.log_bounds import LogExtents
from control.kafka.records.reader import RecordReader
from control.model.ids import TopicPartition

STARTS_MAX: Final = 20
"""So many partitions are asked how old the record at the start offset is: those with most lag."""
HOUR_MS: Final = 3_600_000
_LIMIT: Final = "share.delivery.count.limit"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_FETCH_WAIT_MS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """The dead-letter topic of a share group."""

    topic: str
    records: int | None
    """In it; None: the topic does not exist yet."""
    last_hour: int
    """Of these, written within the last hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareDetails:
    """Offsets of a share group, and what becomes of records that nobody acknowledges."""

    offsets: Mapping[TopicPartition, ShareOffset]
    ends: Mapping[TopicPartition, int]
    """Of the partitions that tell."""
    start_ms: Mapping[TopicPartition, int]
    """Timestamps of the records at start offsets, as far as they could be read."""
    delivery_limit: int | None
    """Deliveries after which a record is given up; None: not told."""
    dead_letters: DeadLetters | None
    """None: it has no dead-letter topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLag:
    """Lag of a streams group in one topic that it reads."""

    partitions: int
    lag: int
    """Over the partitions with a commit."""
    unread: int
    """Records in partitions without a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsDetails:
    """Topology of a streams group with its lags."""

    state: str
    topology: StreamsTopology | None
    lags: Mapping[str, TopicLag]
    """By topic that it reads, of all partitions, with or without members."""
    missing: tuple[str, ...]
    """Topics of its topology that do not exist."""
    restore_lags: Mapping[str, int | None]
    """By subtopology; None: no task tells how far it has restored."""


async def read_share_details(admin: KafkaAdmin, group: str) -> ShareDetails:
    """Those of a share group.

    :raises KafkaPortError: nobody answers, no right to describe it.
    """
    offsets = await admin.groups.share_offsets(group)
    extents, _ = await LogExtents(admin).known(offsets)
    ends = {key: it.end for key, it in extents.items()}
    configs = await _configs(admin, ConfigResource(scope=ConfigScope.GROUP, name=group))
    limit = configs.get(_LIMIT)
    if limit is None:
        (broker, *_) = (await admin.describe_cluster()).brokers
        resource = ConfigResource(scope=ConfigScope.BROKER, name=str(broker.id))
        limit = (await _configs(admin, resource)).get(f"group.{_LIMIT}")
    topic = configs.get(_DEAD_LETTERS)
    return ShareDetails(
        offsets=offsets,
        ends=ends,
        start_ms=await _start_times(admin, offsets, ends),
        delivery_limit=None if limit is None else int(limit),
        dead_letters=await _dead_letters(admin, topic) if topic else None,
    )


async def read_streams_details(admin: KafkaAdmin, group: str) -> StreamsDetails:
    """Those of a streams group.

    :raises KafkaPortError: nobody answers, no right to describe it.
    """
    state, topology = await admin.groups.streams_topology(group)
    parts = topology.subtopologies if topology is not None else ()
    wanted = {name for it in parts for name in it.topics}
    topics = {it.name: it for it in await admin.topics(wanted, leaves_out_unknown=True)}
    read = {name for it in parts for name in it.read if name in topics}
    committed = await admin.groups.committed_offsets(group)
    keys = [partition.key for name in read for partition in topics[name].partitions]
    first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
    there = {partition.key for it in topics.values() for partition in it.partitions}
    unread = [key for it in parts for key in it.unread_ends if key in there]
    end = await admin.offsets.list_offsets([*keys, *unread])
    ends = {key: it.offset for key, it in end.items()}
    return StreamsDetails(
        state=state,
        topology=topology,
        lags={
            name: TopicLag(
                partitions=len(topics[name].partitions),
                lag=sum(max(0, end[key].offset - committed[key])
                        for key in _of(keys, name) if key in committed),
                unread=sum(end[key].offset - first[key].offset
                           for key in _of(keys, name) if key not in committed),
            )
            for name in sorted(read)
        },
        missing=tuple(sorted(wanted - topics.keys())),
        restore_lags={it.id: it.restore_lag(ends) for it in parts},
    )  # fmt: skip


def _of(keys: Iterable[TopicPartition], topic: str) -> list[TopicPartition]:
    return [key for key in keys if key.topic == topic]


async def _configs(admin: KafkaAdmin, resource: ConfigResource) -> dict[str, str | None]:
    """Empty where the cluster does not tell: before Kafka 4.0 groups had no configs."""
    try:
        return {it.name: it.value for it in await admin.describe_configs(resource)}
    except KafkaPortError:
        return {}


async def _start_times(
    admin: KafkaAdmin,
    offsets: Mapping[TopicPartition, ShareOffset],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    at = {key: it.start for key, it in offsets.items() if it.start is not None}
    behind = {key: ends[key] - start for key, start in at.items() if start < ends.get(key, -1)}
    asked = {key: at[key] for key in sorted(behind, key=behind.__getitem__)[-STARTS_MAX:]}
    if not asked:
        return {}
    try:
        async with RecordReader(admin.wire.settings, is_masked=False) as reader:
            chunks = await reader.fetch(asked, max_wait_ms=_FETCH_WAIT_MS)
    except KafkaPortError:
        return {}
    return {key: it.records[0].timestamp_ms for key, it in chunks.items() if it.records}


async def _dead_letters(admin: KafkaAdmin, topic: str) -> DeadLetters:
    found = await admin.topics([topic], leaves_out_unknown=True)
    keys = [partition.key for it in found for partition in it.partitions]
    if not keys:
        return DeadLetters(topic=topic, records=None, last_hour=0)
    first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
    end = await admin.offsets.list_offsets(keys)
    since = await admin.offsets.list_offsets(keys, time.time_ns() // 1_000_000 - HOUR_MS)
    return DeadLetters(
        topic=topic,
        records=sum(end[key].offset - first[key].offset for key in keys),
        last_hour=sum(end[k].offset - at.offset for k, at in since.items() if at.offset >= 0),
    )
