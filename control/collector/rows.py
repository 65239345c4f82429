"""The rows of one broker's round, from what is known. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from broker.metrics_schema import BrokerSample, ReplicaSample, Row
from control.collector.groups import GroupImages
from control.collector.image import BrokerLogs, ClusterImage, PartitionState, TopicConfigs

_UNKNOWN_CONFIGS: Final = TopicConfigs()


def round_rows(
    image: ClusterImage, broker: int, groups: GroupImages, *, round_ms: int
) -> Iterator[Row]:
    """Brokers, the broker's groups and their offsets, its replicas.

    A list of brokers that was read before the round began tells nothing new, and is left out.
    """
    if image.read_ms >= round_ms:
        yield from broker_rows(image, broker, read_ms=image.read_ms)
    yield from groups.rows()
    yield from replica_rows(image, broker)


def broker_rows(image: ClusterImage, broker: int, *, read_ms: int) -> Iterator[BrokerSample]:
    """Every broker; the disk of the sampled one only."""
    logs = image.logs.get(broker)
    for info in image.brokers.values():
        own = logs if info.id == broker else None
        yield BrokerSample(
            id=info.id,
            host=info.host,
            port=info.port,
            fenced=info.is_fenced,
            read_ms=read_ms,
            rack=info.rack,
            is_controller=info.id == image.controller_id,
            disk_total_bytes=None if own is None else own.total_bytes,
            disk_usable_bytes=None if own is None else own.usable_bytes,
            directories=None if own is None else own.directories,
        )


def replica_rows(image: ClusterImage, broker: int) -> Iterable[ReplicaSample]:
    """The replicas assigned to a broker: offsets where it leads, sizes where they are known.

    A partition that it leads but whose offsets were never read has no row yet: it would be a
    leader that tells nothing.
    """
    logs = image.logs.get(broker, BrokerLogs())
    for state in image.replicas_of(broker):
        is_leader = state.leader == broker
        if is_leader and state.high_watermark is None:
            continue
        yield _replica_row(image, state, logs, is_leader=is_leader)


def orphan_rows(image: ClusterImage, told_by: frozenset[int]) -> list[ReplicaSample]:
    """Rows of partitions without a replica on any of these brokers, as metadata has them."""
    return [
        ReplicaSample(
            topic=state.key.topic,
            partition=state.key.partition,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            replicas=state.replicas,
            isr=state.isr,
            read_ms=image.read_ms,
            adding_replicas=state.adding,
            removing_replicas=state.removing,
            min_isr=image.configs.get(state.key.topic, _UNKNOWN_CONFIGS).min_isr,
        )
        for state in image.orphans(told_by)
    ]


def _replica_row(
    image: ClusterImage, state: PartitionState, logs: BrokerLogs, *, is_leader: bool
) -> ReplicaSample:
    # Of a leader's log the protocol tells the high watermark only; behind it lie at most the
    # records that are not replicated yet.
    end = state.high_watermark if is_leader else None
    configs = image.configs.get(state.key.topic, _UNKNOWN_CONFIGS)
    return ReplicaSample(
        topic=state.key.topic,
        partition=state.key.partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        log_start_offset=state.log_start_offset if is_leader else None,
        high_watermark=end,
        log_end_offset=end,
        read_ms=state.ends_read_ms if is_leader else image.read_ms,
        size_bytes=logs.sizes.get(state.key),
        adding_replicas=state.adding,
        removing_replicas=state.removing,
        min_isr=configs.min_isr,
        retention_ms=configs.retention_ms,
        retention_bytes=configs.retention_bytes,
        log_points=state.log_points if is_leader else None,
        readable_offset=state.readable_offset if is_leader else None,
        bytes_in=None if not is_leader or state.bytes_in is None else round(state.bytes_in),
    )
