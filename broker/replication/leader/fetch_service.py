"""Answering Fetch: read, park while there is too little, answer together what is ready together.

An append wakes the parked requests that it concerns; they are looked at once per turn of the
loop, so a produce request over ten partitions makes one answer to a follower, not ten.
"""

import asyncio
from typing import Any

from broker.clock import Clock
from broker.protocol.hot.fetch import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchPosition,
    FetchRequest,
    PartitionData,
)
from broker.replication.errors import (
    FetchSessionIdNotFoundError,
    UnknownPartitionError,
    UnknownTopicIdError,
)
from broker.replication.leader.fetch_reader import (
    ANY_CONSUMER,
    CONSUMER,
    FetchReader,
    check_follower,
)
from broker.replication.leader.fetch_session import (
    NOTHING_KNOWN,
    FetchAnswer,
    FetchOperation,
    FetchSession,
    Key,
    KnownOffsets,
    OnFetched,
)
from broker.replication.leader.fetch_session_cache import FetchSessionCache
from broker.replication.partition.partition import FetchIsolation, Partition
from broker.replication.partition.partition_effects import PartitionEffects
from broker.replication.throttle import ByteBucket


class FetchService:
    """All fetches of this node, of consumers and of followers.

    One session per follower: a follower fetches everything from one leader over one connection.
    """

    def __init__(
        self,
        *,
        replicas: PartitionEffects,
        reader: FetchReader,
        clock: Clock,
        bytes_max: int,
        sessions_max: int,
        throttle: ByteBucket,
    ) -> None:
        self._replicas = replicas
        self._reader = reader
        self._clock = clock
        self._bytes_max = bytes_max
        self._throttle = throttle
        self._sessions = FetchSessionCache(sessions_max, self._end_session)
        self._awake: dict[FetchOperation, bool] = {}

    def fetch(self, request: FetchRequest, on_done: OnFetched) -> FetchOperation | None:
        """Answer now or when max_wait has passed (TimerWheel), once. The operation, if it waits."""
        now_ms = self._clock.monotonic_ms()
        is_consumer = request.replica_id == CONSUMER
        if is_consumer and request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            on_done(FetchAnswer({}, session_error=FetchSessionIdNotFoundError()))
            return None
        if is_consumer or request.session_epoch == FINAL_EPOCH:
            return self._run(FetchOperation(request, on_done, self._wake, None), now_ms)
        session = self._sessions.find(request, now_ms)
        if isinstance(session, Exception):
            on_done(FetchAnswer({}, session_error=session))
            return None
        parked, session.parked = session.parked, None
        if parked is not None:
            self._finish(parked)  # the follower has more to say: it does not wait for this one
        refused = self._update(session, request)
        self._sessions.keep(session, now_ms)
        operation = FetchOperation(request, on_done, self._wake, session)
        operation.results.update(refused)
        operation.is_urgent = bool(refused)
        return self._run(operation, now_ms)

    # Sessions ----------------------------------------------------------------------------

    def _end_session(self, session: FetchSession) -> None:
        if session.parked is not None:
            self._finish(session.parked)
        for key in session.positions:
            partition = self._replicas.by_id.get(key)
            if partition is not None:
                partition.sessions.discard(session)

    def _update(self, session: FetchSession, request: FetchRequest) -> dict[Key, PartitionData]:
        """Take in the new positions, each an acknowledgement; answers what cannot be fetched here.

        Nothing is kept of that: a session is no larger than what is replicated, and a follower that
        is ahead of our metadata names the position again.
        """
        session.replica_epoch = request.replica_epoch
        refused: dict[Key, PartitionData] = {}
        for key in request.forgotten:
            partition = self._partition(key)
            if partition is not None:
                partition.sessions.discard(session)
            session.forget(key)  # type: ignore[arg-type]  # followers name topics by id
        for key, position in request.positions.items():
            partition = self._replicas.by_id.get(key)  # type: ignore[arg-type]
            error = (
                _unknown(key)
                if partition is None
                else check_follower(partition, position.current_leader_epoch, session.replica_id)
            )
            if partition is None or error is not None:
                session.forget(key)  # type: ignore[arg-type]
                if partition is not None:
                    partition.sessions.discard(session)
                refused[key] = PartitionData(error)
                continue
            session.move(key, position)  # type: ignore[arg-type]
            partition.sessions.add(session)
            self._reader.acknowledge(partition, position, session.replica_id, session.replica_epoch)
        return refused

    # Operations --------------------------------------------------------------------------

    def _run(self, operation: FetchOperation, now_ms: int) -> FetchOperation | None:
        self._collect(operation, now_ms)
        request = operation.request
        is_enough = operation.is_urgent or operation.size_bytes >= request.min_bytes
        may_wait = request.max_wait_ms > 0 and (request.positions or operation.session)
        if is_enough or not may_wait:
            self._finish(operation)
            return None
        self._park(operation, now_ms)
        return operation

    def _park(self, operation: FetchOperation, now_ms: int) -> None:
        wait_ms = operation.request.max_wait_ms
        session = operation.session
        if session is not None:
            session.parked = operation
            if session.changed:
                wait_ms = min(wait_ms, self._throttle.wait_ms(now_ms) or wait_ms)
        else:
            for partition in operation.keys_by_partition:
                partition.consumers.add(operation)
        self._replicas.wheel.add(operation, wait_ms)

    def _wake(self, operation: FetchOperation, is_expired: bool) -> None:
        if operation.is_done:
            return
        if not self._awake:
            asyncio.get_running_loop().call_soon(self._look_again)
        self._awake[operation] = self._awake.get(operation, False) or is_expired

    def _look_again(self) -> None:
        awake, self._awake = self._awake, {}
        now_ms = self._clock.monotonic_ms()
        try:
            while awake:
                operation = next(iter(awake))
                self._look_at_awake(operation, awake.pop(operation), now_ms)
        finally:
            # A bug met by one of them is told by the event loop; the others are served.
            for operation, is_expired in awake.items():
                self._wake(operation, is_expired)

    def _look_at_awake(self, operation: FetchOperation, is_expired: bool, now_ms: int) -> None:
        if operation.is_done:
            return
        self._collect(operation, now_ms)
        is_enough = operation.size_bytes >= operation.request.min_bytes
        if is_expired or is_enough or operation.is_urgent:
            self._finish(operation)

    def _finish(self, operation: FetchOperation) -> None:
        if operation.is_done:
            return
        operation.is_done = True
        self._replicas.wheel.remove(operation)
        session = operation.session
        if session is not None:
            session.parked = None
        for partition in operation.keys_by_partition:
            partition.consumers.discard(operation)
        if operation.request.replica_id == CONSUMER:
            operation.count_traffic()
        session_id = NO_SESSION if session is None else session.session_id
        if session is not None and session_id == NO_SESSION:
            self._end_session(session)
        operation.on_done(FetchAnswer(operation.results, session_id=session_id))

    # Reading -----------------------------------------------------------------------------

    def _collect(self, operation: FetchOperation, now_ms: int) -> None:
        """Look at every pending key, as far as the byte limit allows."""
        session = operation.session
        bytes_left = min(operation.request.max_bytes, self._bytes_max) - operation.size_bytes
        for key in list(operation.pending):
            if session is not None and bytes_left <= 0:
                break  # the rest stays marked for the next request
            before = operation.results.get(key)
            if before is not None:
                bytes_left += before.size_bytes
                operation.size_bytes -= before.size_bytes
            data = self._look_at(operation, key, bytes_left, now_ms)
            if data is None:
                continue
            bytes_left -= data.size_bytes
            operation.size_bytes += data.size_bytes
            operation.results[key] = data
            if data.error is not None or data.diverging is not None:
                operation.is_urgent = True

    def _look_at(
        self, operation: FetchOperation, key: Key, bytes_left: int, now_ms: int
    ) -> PartitionData | None:
        """The data of one partition, or None when there is nothing to say about it now."""
        is_first = operation.size_bytes == 0
        session = operation.session
        partition = self._partition(key)
        if session is None:
            del operation.pending[key]
            if partition is None:
                return PartitionData(_unknown(key))
            operation.keys_by_partition[partition] = key
            position = operation.request.positions[key]
            return self._reader.read(
                partition,
                position,
                ANY_CONSUMER if operation.request.may_read_followers else CONSUMER,
                isolation=FetchIsolation.of_consumer(operation.request.isolation_level),
                max_bytes=bytes_left,
                is_first=is_first,
            )
        return self._look_for_session(session, key, partition, bytes_left, (is_first, now_ms))

    def _look_for_session(
        self,
        session: FetchSession,
        key: Any,
        partition: Partition | None,
        bytes_left: int,
        moment: tuple[bool, int],
    ) -> PartitionData | None:
        is_first, now_ms = moment
        if key in session.awaiting:
            return None
        position: FetchPosition | None = session.positions.get(key)
        if position is None:
            session.changed.pop(key, None)
            return None
        if partition is None:
            session.changed.pop(key, None)
            return PartitionData(_unknown(key))
        is_counted = partition.is_leader_throttled
        is_held = is_counted and not partition.state.waits_for(session.replica_id, now_ms)
        if is_held and self._throttle.wait_ms(now_ms) > 0:
            return None  # stays marked until the throttle lets it through
        if is_held:
            bytes_left = min(bytes_left, self._throttle.step_bytes)
        data = self._reader.read(
            partition,
            position,
            session.replica_id,
            isolation=FetchIsolation.LOG_END,
            max_bytes=bytes_left,
            is_first=is_first,
        )
        if not is_first and _is_crowded_out(partition, position, data):
            return None  # stays marked, ahead of those that are marked anew
        session.changed.pop(key, None)
        if is_counted and data.size_bytes:
            self._throttle.record(data.size_bytes, now_ms)
        known = KnownOffsets(data.high_watermark, data.log_start_offset)
        if data.size_bytes or data.error is not None or data.diverging is not None:
            session.awaiting.add(key)
        elif session.known.get(key, NOTHING_KNOWN) == known:
            return None
        session.known[key] = known
        return data

    def _partition(self, key: Any) -> Partition | None:
        topic = key[0]
        return (self._replicas.by_id if isinstance(topic, bytes) else self._replicas.by_name).get(
            key
        )


def _is_crowded_out(partition: Partition, position: FetchPosition, data: PartitionData) -> bool:
    """Whether there is a batch to send that was too large for what others left of the answer."""
    is_empty = data.size_bytes == 0 and data.error is None and data.diverging is None
    return is_empty and position.fetch_offset < partition.log.log_end_offset


def _unknown(key: Key) -> Exception:
    return UnknownTopicIdError() if isinstance(key[0], bytes) else UnknownPartitionError()
