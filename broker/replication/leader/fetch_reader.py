"""Reading one partition for a fetch: checks, divergence, the follower's acknowledgement, data."""

import logging

from broker.clock import Clock
from broker.log.errors import OffsetOutOfRangeError, StorageError
from broker.protocol.hot.fetch import FetchPosition, PartitionData
from broker.replication.errors import (
    FencedLeaderEpochError,
    NotLeaderError,
    ReplicationError,
    UnknownLeaderEpochError,
)
from broker.replication.partition.events import ReplicaFetched
from broker.replication.partition.partition import FetchIsolation, Partition
from broker.replication.partition.partition_effects import PartitionEffects

CONSUMER = -1
ANY_CONSUMER = -3
"""A consumer that may read from followers: below their high watermarks."""
_CONSUMERS = (CONSUMER, ANY_CONSUMER)
COMPLAINT_MS = 60_000

log = logging.getLogger(__name__)


def check_leader(partition: Partition, current_leader_epoch: int) -> ReplicationError | None:
    """Why this node may not answer as leader of the epoch that the client believes in."""
    if not partition.state.is_leader:
        return NotLeaderError()
    return check_epoch(partition, current_leader_epoch)


def check_epoch(partition: Partition, current_leader_epoch: int) -> ReplicationError | None:
    """Why one of the two has not heard of the latest leader."""
    state = partition.state
    if current_leader_epoch in (-1, state.leader_epoch):
        return None
    if current_leader_epoch < state.leader_epoch:
        return FencedLeaderEpochError()
    return UnknownLeaderEpochError()


def check_follower(
    partition: Partition, current_leader_epoch: int, replica: int
) -> ReplicationError | None:
    """Why a broker may not fetch this partition as its follower now."""
    error = check_leader(partition, current_leader_epoch)
    if error is None and replica not in partition.state.replicas:
        return NotLeaderError()
    return error


def _check_fetcher(partition: Partition, epoch: int, replica: int) -> ReplicationError | None:
    if epoch < 0:
        epoch = -1  # FetchRequest.optionalEpoch; ListOffsets takes -1 alone for none
    if replica == CONSUMER:
        return check_leader(partition, epoch)
    if replica == ANY_CONSUMER:
        return check_epoch(partition, epoch)
    return check_follower(partition, epoch, replica)


def diverging_epoch(partition: Partition, position: FetchPosition) -> tuple[int, int] | None:
    """(epoch, end offset) beyond which the fetcher's log cannot be ours, None when it can.

    :raises OffsetOutOfRangeError: our log does not reach back to the fetcher's last epoch.
    """
    if position.last_fetched_epoch < 0:
        return None
    end = partition.log.end_offset_for_epoch(position.last_fetched_epoch)
    if end.epoch < 0 or end.end_offset < 0:
        raise OffsetOutOfRangeError(
            position.fetch_offset, partition.log.log_start_offset, partition.log.log_end_offset
        )
    if end.epoch < position.last_fetched_epoch or end.end_offset < position.fetch_offset:
        return end.epoch, end.end_offset
    return None


class FetchReader:
    """Reads for consumers and followers."""

    def __init__(self, *, replicas: PartitionEffects, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self._complained_ms: dict[Partition, int] = {}

    def acknowledge(
        self, partition: Partition, position: FetchPosition, replica: int, broker_epoch: int
    ) -> None:
        """A follower's fetch offset is its acknowledgement, once its log is known to be ours."""
        log = partition.log
        if not log.log_start_offset <= position.fetch_offset <= log.log_end_offset:
            return
        try:
            if diverging_epoch(partition, position) is not None:
                return
        except OffsetOutOfRangeError:
            return
        event = ReplicaFetched(
            replica,
            position.fetch_offset,
            position.log_start_offset,
            broker_epoch,
            self._clock.monotonic_ms(),
        )
        self._replicas.apply(partition, event)

    def read(
        self,
        partition: Partition,
        position: FetchPosition,
        replica: int,
        *,
        isolation: FetchIsolation,
        max_bytes: int,
        is_first: bool,
    ) -> PartitionData:
        """Reads for this fetcher; `is_first` lets one batch exceed `max_bytes`."""
        error = _check_fetcher(partition, position.current_leader_epoch, replica)
        if error is not None:
            return PartitionData(error)
        try:
            diverging = diverging_epoch(partition, position)
            if diverging is not None:
                return _empty(partition)._replace(diverging=diverging)
            return _read_log(partition, position, isolation, max_bytes, is_first)
        except OffsetOutOfRangeError as out_of_range:
            return _out_of_range(partition, replica, out_of_range)
        except StorageError as storage:
            self._complain(partition, storage)
            return PartitionData(storage)

    def _complain(self, partition: Partition, error: StorageError) -> None:
        """Once a minute: fetchers ask again and again."""
        now_ms = self._clock.monotonic_ms()
        since_ms = now_ms - COMPLAINT_MS
        self._complained_ms = {p: ms for p, ms in self._complained_ms.items() if ms > since_ms}
        if partition not in self._complained_ms:
            self._complained_ms[partition] = now_ms
            log.error("%s-%d: cannot be fetched: %s", partition.topic, partition.partition, error)


def _read_log(
    partition: Partition,
    position: FetchPosition,
    isolation: FetchIsolation,
    max_bytes: int,
    is_first: bool,
) -> PartitionData:
    log = partition.log
    offset = position.fetch_offset
    visible_end = partition.visible_end(isolation)
    if offset == visible_end or (max_bytes <= 0 and not is_first):
        return _empty(partition)
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise OffsetOutOfRangeError(offset, log.log_start_offset, log.log_end_offset)
    if offset > visible_end:
        return _empty(partition)  # written, but not yet committed
    found = log.read(
        offset,
        max_bytes=min(position.max_bytes, max_bytes),
        max_offset=visible_end,
        min_one_batch=is_first,
    )
    data = _empty(partition)._replace(size_bytes=found.size_bytes, slices=found.slices)
    if isolation is FetchIsolation.TXN_COMMITTED:
        return data._replace(aborted=log.aborted_within(found))
    return data


def _empty(partition: Partition) -> PartitionData:
    return PartitionData(
        None,
        partition.state.high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
    )


def _out_of_range(
    partition: Partition, replica: int, error: OffsetOutOfRangeError
) -> PartitionData:
    """Followers are told where our log starts and ends, so that they need not ask again."""
    if replica in _CONSUMERS:
        return PartitionData(error)
    log = partition.log
    return PartitionData(
        error,
        high_watermark=partition.state.high_watermark,
        last_stable_offset=log.log_end_offset,
        log_start_offset=log.log_start_offset,
    )
