"""A follower's handling of one partition of a fetch response."""

import logging
from dataclasses import dataclass
from typing import Final

from broker.log.errors import LogError, StorageError
from broker.protocol.hot.fetch import FetchPosition
from broker.protocol.hot.replica_fetch import FetchedPartition
from broker.replication.partition.events import FollowerAppended, LogStartMoved, LogTruncated
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects

log = logging.getLogger(__name__)

_NONE: Final = 0
_OFFSET_OUT_OF_RANGE: Final = 1
# UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED and UNKNOWN_LEADER_EPOCH,
# UNKNOWN_TOPIC_ID: one of us has not yet heard of the latest metadata.
_ORDINARY: Final = frozenset({3, 6, 74, 75, 100})


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Outcome: fetch on from a new position, nothing new, or try again later."""

    has_moved: bool = False
    is_failed: bool = False


MOVED: Final = Progress(has_moved=True)
UNCHANGED: Final = Progress()
FAILED: Final = Progress(is_failed=True)


def fetch_position(partition: Partition, max_bytes: int) -> FetchPosition:
    """Where this replica goes on."""
    state = partition.state
    last_epoch = partition.log.latest_epoch
    return FetchPosition(
        partition.log.log_end_offset,
        max_bytes,
        state.leader_epoch,
        -1 if last_epoch is None else last_epoch,
        partition.log.log_start_offset,
    )


def as_of_now(
    partition: Partition, fetched: FetchedPartition, asked: FetchPosition | None
) -> FetchedPartition | None:
    """The part of an answer that still holds at the log's present end; None: nothing does.

    Example: asked at 100 twice, because the partition joined anew while the first request was on
    its way. The first answer's records move the log to 110; of the second one, only the high
    watermark is news. Had the first one had the log cut to 80 instead, nothing of the second one
    could be relied on; neither when a new leader epoch has begun.
    """
    end = partition.log.log_end_offset
    if asked is None or asked.current_leader_epoch != partition.state.leader_epoch:
        return None
    if asked.fetch_offset == end:
        return fetched
    is_old_news = fetched.error_code != _NONE or fetched.diverging is not None
    if end < asked.fetch_offset or is_old_news:
        return None
    return fetched._replace(records=memoryview(b""))


def apply_fetched(
    replicas: PartitionEffects, partition: Partition, fetched: FetchedPartition
) -> Progress:
    """Write, truncate or note what the leader sent."""
    if replicas.disk.refusal is not None:
        return FAILED
    try:
        if fetched.error_code == _OFFSET_OUT_OF_RANGE:
            return _start_anew(replicas, partition, fetched)
        if fetched.error_code != _NONE:
            log.log(
                logging.DEBUG if fetched.error_code in _ORDINARY else logging.INFO,
                "%s-%d: leader %d answers a fetch with error %d",
                *(partition.topic, partition.partition, partition.leader, fetched.error_code),
            )
            return FAILED
        if fetched.diverging is not None:
            return _truncate(replicas, partition, *fetched.diverging)
        return _append(replicas, partition, fetched)
    except StorageError as error:
        if not replicas.disk.note(error):
            log.error("%s-%d: cannot replicate: %s", partition.topic, partition.partition, error)
    except LogError as error:
        log.warning(
            "%s-%d: leader %d sent records that do not fit: %s",
            *(partition.topic, partition.partition, partition.leader, error),
        )
    except Exception:  # the leader's other partitions go on
        log.exception("%s-%d: cannot replicate", partition.topic, partition.partition)
    return FAILED


def _append(
    replicas: PartitionEffects, partition: Partition, fetched: FetchedPartition
) -> Progress:
    has_records = len(fetched.records) > 0
    if has_records:
        partition.log.append_as_follower(fetched.records)
    end = partition.log.log_end_offset
    replicas.apply(partition, FollowerAppended(end, fetched.high_watermark))
    has_new_start = _follow_log_start(replicas, partition, fetched.log_start_offset)
    return MOVED if has_records or has_new_start else UNCHANGED


def _follow_log_start(replicas: PartitionEffects, partition: Partition, leader_start: int) -> bool:
    """DeleteRecords and retention on the leader reach us with the next answer."""
    if not partition.log.log_start_offset < leader_start <= partition.state.high_watermark:
        return False
    partition.log.increment_log_start_offset(leader_start)
    replicas.apply(partition, LogStartMoved(partition.log.log_start_offset))
    return True


def _truncate(
    replicas: PartitionEffects, partition: Partition, epoch: int, end_offset: int
) -> Progress:
    """Cut back to where our log and the leader's may still be one (KIP-101, KIP-595).

    Example: leader's epoch 3 ends at 90, ours at 100: cut to 90. If we never saw epoch 3, our
    largest older epoch (2, ending at 80) is the candidate: cut to 80, and the leader will say
    whether 2 ended earlier there.
    """
    own = partition.log.end_offset_for_epoch(epoch)
    own_end = partition.log.log_end_offset if own.epoch < 0 else own.end_offset
    target = min(own_end, end_offset) if own.epoch in (-1, epoch) else own_end
    target = min(target, partition.log.log_end_offset)
    log.warning(
        "%s-%d: truncating from %d to %d, the leader's epoch %d ends at %d",
        *(partition.topic, partition.partition, partition.log.log_end_offset, target),
        *(epoch, end_offset),
    )
    if target < partition.state.high_watermark:
        log.warning(
            "%s-%d: this is below our high watermark %d (unclean election?)",
            *(partition.topic, partition.partition, partition.state.high_watermark),
        )
    partition.log.truncate_to(target)
    replicas.apply(partition, LogTruncated(partition.log.log_end_offset))
    return MOVED


def _start_anew(
    replicas: PartitionEffects, partition: Partition, fetched: FetchedPartition
) -> Progress:
    """Our end lies outside the leader's log; it told us its start and (as stable offset) end."""
    leader_start, leader_end = fetched.log_start_offset, fetched.last_stable_offset
    if leader_start < 0 or leader_end < 0:
        return FAILED
    own_end = partition.log.log_end_offset
    log.warning(
        "%s-%d: our end %d lies outside the leader's log %d..%d",
        *(partition.topic, partition.partition, own_end, leader_start, leader_end),
    )
    if leader_start <= leader_end < own_end and leader_end >= partition.log.log_start_offset:
        partition.log.truncate_to(leader_end)
    else:
        partition.log.truncate_fully_and_start_at(leader_start)
    replicas.apply(partition, LogTruncated(partition.log.log_end_offset))
    replicas.apply(partition, LogStartMoved(partition.log.log_start_offset))
    return MOVED
