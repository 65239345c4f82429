"""Figures of a broker at one moment, as rows of the metrics schema.

Commits are read before end offsets, so that every committed offset of a round can be paired with
an end offset read at or after it.
"""

import shutil
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.clock import Clock
from broker.coordinator.groups.describe_groups import GroupReading
from broker.handlers.services import NodeServices
from broker.metadata.cordons import is_cordoned
from broker.metadata.effective_configs import topic_config_value
from broker.metadata.image import MetadataImage, PartitionImage
from broker.metrics.log_ages import LogAges
from broker.metrics_schema import (
    SEGMENT_SIZES_MAX,
    BrokerSample,
    CommitSample,
    GroupSample,
    LogDirSample,
    ReplicaSample,
    Row,
    UnchangedCommit,
    UnchangedReplica,
)

ROWS_PER_SLICE: Final = 500
"""Rows read in one go; between two slices the event loop serves others."""
FULL_MS: Final = 30_000
"""What does not change is told in full this often."""
_MIN_ISR: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSpace:
    """The file system that holds the log directory, in bytes."""

    total_bytes: int
    usable_bytes: int


def read_disk_space(directory: str) -> DiskSpace | None:
    """Space of the log directory's file system; None when it cannot be asked."""
    try:
        usage = shutil.disk_usage(directory)
    except OSError:
        return None
    return DiskSpace(total_bytes=usage.total, usable_bytes=usage.free)


class Repeats:
    """Remembers the last full rows of this broker, so that unchanged ones are not sent in full
    again.

    ``FULL_MS`` after its last full row a partition is told in full again: a job that begins
    afresh knows everything after so long.
    """

    def __init__(self) -> None:
        self._told: dict[Hashable, tuple[int, Hashable]] = {}
        self._asked: set[Hashable] = set()

    def since(self, name: Hashable, figures: Hashable, now_ms: int) -> int | None:
        """When the same figures of this name were last told in full; None: tell them now."""
        self._asked.add(name)
        before = self._told.get(name)
        if before is not None and before[1] == figures and 0 <= now_ms - before[0] < FULL_MS:
            return before[0]
        self._told[name] = (now_ms, figures)
        return None

    def end_round(self) -> None:
        """Forget what was not asked for in this round: it is gone."""
        for name in self._told.keys() - self._asked:
            del self._told[name]
        self._asked.clear()

    def forget(self) -> None:
        """Tell everything in full again: the last round may not have arrived."""
        self._told.clear()


def slice_rows(
    node: NodeServices,
    node_id: int,
    repeats: Repeats | None = None,
    ages: LogAges | None = None,
) -> Iterator[Sequence[Row]]:
    """One round in slices: brokers, groups with their commits, then replicas."""
    told = Repeats() if repeats is None else repeats
    known_ages = LogAges(node.clock.wall_ms) if ages is None else ages
    image: MetadataImage = node.metadata.image
    rows: list[Row] = list(broker_rows(node, node_id))
    for reading in list(node.groups.views.readings()):
        rows.extend(group_rows(reading, node.clock.wall_ms(), told))
        if len(rows) >= ROWS_PER_SLICE:
            yield rows
            rows = []
    minimums: dict[str, int] = {}
    for replica in list(node.replicas.partitions()):
        min_isr = _min_isr(node, image, replica, minimums)
        row = replica_row(replica, image, node.clock, told, min_isr=min_isr)
        if isinstance(row, ReplicaSample) and row.leader == node_id:
            row = replace(row, log_points=known_ages.news(replica.log))
        if row is not None:
            rows.append(row)
        if len(rows) >= ROWS_PER_SLICE:
            yield rows
            rows = []
    told.end_round()
    yield rows


def broker_rows(node: NodeServices, node_id: int) -> Iterator[BrokerSample]:
    """Every registered broker; the disk is known of this one only."""
    image: MetadataImage = node.metadata.image
    read_ms = node.clock.wall_ms()
    space = read_disk_space(node.config.log_dir)
    directory = _directory(node, space)
    for broker in image.brokers.values():
        endpoint = broker.endpoint(node.config.listeners.inter_broker) or broker.endpoints[0]
        own = space if broker.id == node_id else None
        yield BrokerSample(
            id=broker.id,
            host=endpoint.host,
            port=endpoint.port,
            fenced=broker.fenced,
            read_ms=read_ms,
            rack=broker.rack,
            epoch=broker.epoch,
            is_controller=broker.id == node.metadata.controller_id,
            disk_total_bytes=None if own is None else own.total_bytes,
            disk_usable_bytes=None if own is None else own.usable_bytes,
            directories=(directory,) if broker.id == node_id else None,
        )


def _directory(node: NodeServices, space: DiskSpace | None) -> LogDirSample:
    path, replicas = node.logs.directory, tuple(node.replicas.partitions())
    if space is None:
        return LogDirSample(path=path, is_failed=True)
    return LogDirSample(
        path=path,
        total_bytes=space.total_bytes,
        usable_bytes=space.usable_bytes,
        size_bytes=sum(replica.log.size_bytes for replica in replicas),
        replicas=len(replicas),
        is_cordoned=is_cordoned(node.metadata.image, node.config, path),
    )


def group_rows(reading: GroupReading, read_ms: int, repeats: Repeats) -> Iterator[Row]:
    """A group and what it committed."""
    yield GroupSample(
        group_id=reading.group_id,
        state=str(reading.state),
        members=reading.members,
        read_ms=read_ms,
        protocol=reading.protocol_name,
        group_type="classic",
    )
    for commit in reading.commits:
        name = (commit.group_id, commit.topic, commit.partition)
        figures = (commit.committed_offset, commit.commit_ms, commit.member_id)
        since_ms = repeats.since(name, figures, read_ms)
        if since_ms is not None:
            yield UnchangedCommit(
                group_id=commit.group_id,
                topic=commit.topic,
                partition=commit.partition,
                read_ms=read_ms,
                since_ms=since_ms,
            )
            continue
        yield CommitSample(
            group_id=commit.group_id,
            topic=commit.topic,
            partition=commit.partition,
            committed_offset=commit.committed_offset,
            read_ms=read_ms,
            commit_ms=commit.commit_ms,
            member_id=commit.member_id,
        )


def replica_row(
    replica: Any, image: MetadataImage, clock: Clock, repeats: Repeats, *, min_isr: int
) -> ReplicaSample | UnchangedReplica | None:
    """One local replica; None when the metadata no longer knows its partition."""
    log = replica.log
    known = image.partition(log.topic, log.partition)
    if known is None:
        return None
    traffic = replica.traffic
    read_ms = clock.wall_ms()
    retention_ms = log.config.retention_ms if log.config.is_deleting else None
    retention_bytes = max(-1, log.config.retention_bytes) if log.config.is_deleting else -1
    figures = (
        *(known, min_isr, log.log_start_offset, replica.high_watermark, log.log_end_offset),
        *(log.size_bytes, log.segment_count, traffic.bytes_in, traffic.bytes_out),
        *(retention_ms, retention_bytes),
    )
    since_ms = repeats.since((log.topic, log.partition), figures, read_ms)
    if since_ms is not None:
        return UnchangedReplica(
            topic=log.topic, partition=log.partition, read_ms=read_ms, since_ms=since_ms
        )
    segments = log.segments()
    newest = segments[-SEGMENT_SIZES_MAX:]
    return ReplicaSample(
        topic=log.topic,
        partition=log.partition,
        leader=known.leader,
        leader_epoch=known.leader_epoch,
        replicas=known.replicas,
        isr=known.isr,
        log_start_offset=log.log_start_offset,
        high_watermark=replica.high_watermark,
        log_end_offset=log.log_end_offset,
        read_ms=read_ms,
        size_bytes=log.size_bytes,
        segments=len(segments),
        segment_bytes=[segment.size_bytes for segment in newest],
        segment_offsets=[segment.base_offset for segment in newest],
        adding_replicas=known.adding_replicas,
        removing_replicas=known.removing_replicas,
        min_isr=min_isr,
        bytes_in=traffic.bytes_in,
        bytes_out=traffic.bytes_out,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
    )


def _min_isr(node: NodeServices, image: MetadataImage, replica: Any, known: dict[str, int]) -> int:
    """min.insync.replicas of the replica's topic, looked up once per topic and round."""
    topic = replica.log.topic
    if topic not in known:
        known[topic] = min_isr_of(node, image, topic)
    return known[topic]


def min_isr_of(node: NodeServices, image: MetadataImage, topic: str) -> int:
    """min.insync.replicas of a topic, as in force on this broker."""
    return int(topic_config_value(image, node.config, topic, _MIN_ISR) or 1)


def pick_partition(
    partitions: Mapping[int, PartitionImage], node_id: int, current: int | None
) -> int:
    """The metrics partition for this node's rounds.

    One that this node leads costs no hop, and staying with it keeps a broker's rounds in order;
    otherwise nodes spread over the partitions by their id.
    """
    led = sorted(index for index, image in partitions.items() if image.leader == node_id)
    if current in led:
        return current
    return led[0] if led else node_id % len(partitions)
