"""Pulling from one leader: one connection, one session, one request that carries all positions.

A request is the acknowledgement of everything before its positions. It counts for the broker epoch
that it carries: registered anew, the broker names every position again. Answers are written while
they still lie in the connection's buffer; then the next request goes out. When a partition joins
while a request is parked at the leader, a second request follows at once: the leader then answers
the parked one, so that a new partition does not wait for the end of a long poll.

With two requests on their way, an answer may be about a position that the log has left meanwhile:
the other answer moved it, or a new leader epoch began. Such an answer is not taken; the next
request says where the log stands now.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from broker.background import Tasks, log_failure
from broker.clock import Clock
from broker.log.errors import ForceFailedError
from broker.protocol.errors import ProtocolError
from broker.protocol.hot.fetch import FetchPosition
from broker.protocol.hot.replica_fetch import (
    FetchedPartition,
    FetchedResponse,
    ReplicaFetchParameters,
    TopicIdPartition,
    decode_replica_fetch,
    encode_replica_fetch,
)
from broker.replication.follower.fetch_session_handler import FetchSessionHandler, HeldPartitions
from broker.replication.follower.fetched_partition import apply_fetched, as_of_now, fetch_position
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects
from broker.replication.ports import LeaderChannel
from broker.replication.throttle import ByteBucket

log = logging.getLogger(__name__)

REQUESTS_IN_FLIGHT_MAX: Final = 2
RECONNECT_MS_MAX: Final = 200
ANSWER_GRACE_S: Final = 5.0
"""How much later than its max_wait an answer may come before the connection is given up."""
POSITIONS_MAX: Final = 2_000
"""A request names so many; further ones follow at once. Both ends are held up for some 20 µs by
each: a session of 100,000 replicas would be 2 s in which nobody else is served."""
FAILURES_QUIET_MAX: Final = 10
"""So many refusals in a row, some five seconds of them, are ordinary when leaders change."""

Positions = dict[TopicIdPartition, FetchPosition]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherConfig:
    """Times in ms, sizes in bytes; Kafka's replica.fetch.*"""

    node_id: int
    wait_ms_max: int
    bytes_min: int
    partition_bytes_max: int
    response_bytes_max: int
    backoff_first_ms: int
    backoff_ms: int


class ReplicaFetcher:
    """All partitions that this node follows on one leader."""

    def __init__(
        self,
        *,
        leader: int,
        config: FetcherConfig,
        replicas: PartitionEffects,
        clock: Clock,
        channel: LeaderChannel,
        throttle: ByteBucket,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.leader = leader
        self._config = config
        self._replicas = replicas
        self._clock = clock
        self._channel = channel
        self._throttle = throttle
        self._broker_epoch = broker_epoch
        self._named_epoch = -1
        self._parameters = ReplicaFetchParameters(
            f"broker-{config.node_id}-fetcher",
            config.node_id,
            config.wait_ms_max,
            config.bytes_min,
            config.response_bytes_max,
        )
        self._partitions: dict[TopicIdPartition, Partition] = {}
        self._changed: dict[TopicIdPartition, None] = {}
        self._gone: set[TopicIdPartition] = set()
        self._held = HeldPartitions(
            backoff_ms_first=config.backoff_first_ms, backoff_ms_max=config.backoff_ms
        )
        self._session = FetchSessionHandler()
        self._asked: Positions = {}
        self._in_flight = 0
        self._is_reachable = True
        self._has_joined = False
        self._event = asyncio.Event()
        self._tasks = Tasks(f"fetcher of replicas from broker {leader}", log_failure)
        self._tasks.keep(self._run)

    def add(self, partition: Partition) -> None:
        """Fetch this partition from now on, from its log's end."""
        self._partitions[partition.key] = partition
        self._held.forget(partition.key)
        self._tell_position(partition)
        self._has_joined = True
        self._event.set()

    def remove(self, partition: Partition) -> None:
        """Do not fetch this partition any more."""
        self._partitions.pop(partition.key, None)
        self._asked.pop(partition.key, None)
        self._held.forget(partition.key)
        self._changed.pop(partition.key, None)
        self._gone.add(partition.key)

    def throttle_changed(self) -> None:
        """Another rate, or fewer replicas to keep to it: what was held back is tried again."""
        self._held.release_throttled()
        self._event.set()

    def __contains__(self, partition: Partition) -> bool:
        return self._partitions.get(partition.key) is partition

    @property
    def is_idle(self) -> bool:
        """Whether nothing is fetched here."""
        return not self._partitions

    async def close(self) -> None:
        """Stop fetching and end the connection."""
        await self._tasks.stop()
        await self._channel.close()

    # Asking ------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._event.clear()
            wait_s: float | None = None
            try:
                while self._is_due():
                    await self._send()
                wait_s = self._held.wait_s(self._clock.monotonic_ms())
            except OSError as error:
                self._start_over(f"cannot be reached: {error}")
                wait_s = min(self._config.backoff_ms, RECONNECT_MS_MAX) / 1000
            except Exception:
                self._start_over("cannot be asked")
                raise
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._event.wait()

    def _is_due(self) -> bool:
        """The first request of a session goes alone; later a second one may overtake a parked."""
        if not self._partitions:
            return False
        for key in self._held.release(self._clock.monotonic_ms()):
            self._changed[key] = None
            self._has_joined = True
        if self._in_flight == 0:
            return len(self._partitions) > len(self._held) or bool(self._session.partitions)
        may_overtake = self._session.is_open and self._in_flight < REQUESTS_IN_FLIGHT_MAX
        return self._has_joined and may_overtake

    async def _send(self) -> None:
        self._in_flight += 1
        asked: Positions = {}
        build, answered = partial(self._build, asked), partial(self._answered, asked)
        try:
            timeout_s = self._parameters.max_wait_ms / 1000 + ANSWER_GRACE_S
            await self._channel.submit(build, answered, timeout_s=timeout_s)
        except BaseException:
            self._in_flight -= 1
            raise

    def _build(self, positions: Positions, correlation_id: int) -> Sequence[bytes]:
        """Fills in the `positions` that this request names."""
        replica_epoch = self._broker_epoch()
        if replica_epoch != self._named_epoch:
            self._named_epoch = replica_epoch
            self._changed = dict.fromkeys(self._partitions)
        for key in list(islice(self._changed, POSITIONS_MAX)):
            del self._changed[key]
            if key not in self._held:
                positions[key] = self._position(self._partitions[key])
        session, forgotten = self._session.advance(positions.keys(), self._gone)
        self._gone.clear()
        self._has_joined = has_more = bool(self._changed)
        parameters = self._parameters
        frame = encode_replica_fetch(
            parameters._replace(max_wait_ms=0) if has_more else parameters,
            correlation_id=correlation_id,
            replica_epoch=replica_epoch,
            session=session,
            positions=positions,
            forgotten=forgotten,
        )
        return (frame,)

    def _position(self, partition: Partition) -> FetchPosition:
        """A throttled partition is fetched in small steps, so that no long debt builds up."""
        bytes_max = self._config.partition_bytes_max
        if partition.is_follower_throttled:
            bytes_max = min(bytes_max, self._throttle.step_bytes)
        return fetch_position(partition, bytes_max)

    # Answers -----------------------------------------------------------------------------

    def _answered(self, asked: Positions, outcome: Any) -> None:
        """Called with a view that is valid during the call, or with why there is none.

        Answers come in the order of their requests: what this one `asked` is what the leader went
        by, and for other partitions what earlier ones did.
        """
        self._in_flight -= 1
        self._asked.update(asked)
        self._event.set()
        try:
            if isinstance(outcome, OSError):
                raise outcome
            self._take(decode_replica_fetch(outcome))
        except (OSError, ProtocolError) as error:
            self._start_over(f"does not answer: {error}")

    def _take(self, response: FetchedResponse) -> None:
        if response.error_code != 0:
            self._start_over(f"refuses a fetch: error {response.error_code}")
            return
        if not self._is_reachable:
            self._is_reachable = True
            log.info("fetching from broker %d again", self.leader)
        self._session.answered(response.session_id)
        if not self._session.is_open:
            # The leader keeps no session for us: it wants to hear every position again.
            self._changed |= dict.fromkeys(self._session.partitions & self._partitions.keys())
            self._session = FetchSessionHandler()
        for fetched in response.partitions:
            partition = self._partitions.get((fetched.topic_id, fetched.partition))
            if partition is not None:
                self._take_partition(partition, fetched)

    def _take_partition(self, partition: Partition, fetched: FetchedPartition) -> None:
        key = partition.key
        now_ms = self._clock.monotonic_ms()
        current = as_of_now(partition, fetched, self._asked.get(key))
        if current is not fetched:
            self._changed[key] = None
        if current is None:
            return
        progress = apply_fetched(self._replicas, partition, current)
        if progress.is_failed:
            failures = self._held.hold_failed(key, now_ms)
            if failures == FAILURES_QUIET_MAX and fetched.error_code:
                log.warning(
                    "%s-%d: leader %d has refused %d fetches in a row, the last with error %d",
                    *(partition.topic, partition.partition, self.leader, FAILURES_QUIET_MAX),
                    fetched.error_code,
                )
            self._changed.pop(key, None)
            self._gone.add(key)
            return
        self._held.succeeded(key)
        if progress.has_moved:
            self._tell_position(partition)
        if partition.is_follower_throttled and fetched.records:
            self._throttle.record(len(fetched.records), now_ms)
            wait_ms = self._throttle.wait_ms(now_ms)
            # At the high watermark the leader takes us in: producers may wait for us already.
            is_copying = partition.log.log_end_offset < current.high_watermark
            if wait_ms and is_copying and self._config.node_id not in partition.isr:
                self._held.hold_throttled(key, now_ms + wait_ms)
                self._gone.add(key)

    def _tell_position(self, partition: Partition) -> None:
        """A position acknowledges: where flush.messages asks for it, not before the disk has the
        records."""
        self._changed[partition.key] = None
        if self._replicas.flushes.is_due(partition.log):
            self._held.hold_unforced(partition.key)
            self._replicas.flushes.force(partition.log, partial(self._forced, partition))

    def _forced(self, partition: Partition, error: ForceFailedError | None) -> None:
        """After an error this node ends."""
        if error is None and partition in self:
            self._held.forced(partition.key)
            self._changed[partition.key] = None
            self._has_joined = True
            self._event.set()

    def _start_over(self, reason: str) -> None:
        """Forget the session: the next request carries every position."""
        log.log(
            logging.INFO if self._is_reachable else logging.DEBUG,
            "broker %d %s",
            *(self.leader, reason),
        )
        self._is_reachable = False
        self._session = FetchSessionHandler()
        self._changed = dict.fromkeys(self._partitions)
