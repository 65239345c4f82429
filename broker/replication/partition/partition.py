"""One replica on this node: its role, its log, and who waits for it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol
from uuid import UUID

from broker.log.log_validator import AppendInfo
from broker.log.partition_log import PartitionLog
from broker.replication.errors import AppendTimedOutError
from broker.replication.partition.partition_state import PartitionState
from broker.replication.timer_wheel import NOT_WAITING


@dataclass(slots=True)
class Traffic:
    """Cumulative since this replica was opened; only a leader counts."""

    bytes_in: int = 0
    bytes_out: int = 0


class Follower(Protocol):
    """A fetch session of another node, or a parked consumer: told when there is more to read."""

    def records_appended(self, partition: "Partition") -> None:
        """The log has grown."""

    def partition_changed(self, partition: "Partition") -> None:
        """The high watermark has moved, or the role has changed."""


class PendingAppend:
    """A producer that waits for the high watermark to reach `required_offset`."""

    __slots__ = ("info", "on_done", "on_expired", "required_offset", "wheel_tick")

    def __init__(
        self,
        info: AppendInfo,
        on_done: Callable[[AppendInfo], None],
        on_expired: "Callable[[PendingAppend], None]",
    ) -> None:
        self.required_offset = info.last_offset + 1
        self.info = info
        self.on_done: Callable[[AppendInfo], None] | None = on_done
        self.on_expired = on_expired
        self.wheel_tick = NOT_WAITING

    def expire(self) -> None:
        """Its time is over: see `Partition.append_expired`."""
        self.on_expired(self)

    def finish(self, error: Exception | None) -> None:
        """Answer once."""
        on_done, self.on_done = self.on_done, None
        if on_done is not None:
            on_done(self.info if error is None else self.info._replace(error=error))


READ_COMMITTED = 1
"""Kafka's number of the isolation level."""


class FetchIsolation(Enum):
    """Up to where a reader is shown records (Kafka's FetchIsolation)."""

    LOG_END = "replicas"
    HIGH_WATERMARK = "consumers"
    TXN_COMMITTED = "consumers with isolation.level=read_committed"

    @classmethod
    def of_consumer(cls, isolation_level: int) -> "FetchIsolation":
        """By the level that a consumer names in its request."""
        return cls.TXN_COMMITTED if isolation_level == READ_COMMITTED else cls.HIGH_WATERMARK


class Partition:
    """A replica; the ReplicaManager carries out its state's effects."""

    __slots__ = (
        "_expired_appends",
        "consumers",
        "is_follower_throttled",
        "is_leader_throttled",
        "key",
        "log",
        "low_watermark_waiters",
        "partition",
        "pending_appends",
        "sessions",
        "state",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(self, log: PartitionLog, state: PartitionState) -> None:
        self.topic: str = log.topic
        self.partition: int = log.partition
        self.topic_id: UUID = log.topic_id
        self.key: tuple[bytes, int] = (log.topic_id.bytes, log.partition)
        self.log = log
        self.state = state
        self.traffic = Traffic()
        self.pending_appends: deque[PendingAppend] = deque()
        self._expired_appends = 0
        self.sessions: set[Follower] = set()
        self.consumers: set[Follower] = set()
        self.low_watermark_waiters: list[Callable[[int], None]] = []
        self.is_leader_throttled = False
        self.is_follower_throttled = False

    def append_expired(self, pending: PendingAppend) -> None:
        """Answer a producer whose time is over; such entries go once they are the majority."""
        pending.finish(AppendTimedOutError())
        self._expired_appends += 1
        if 2 * self._expired_appends > len(self.pending_appends):
            waiting = [each for each in self.pending_appends if each.on_done is not None]
            self.pending_appends.clear()
            self.pending_appends.extend(waiting)
            self._expired_appends = 0

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the partition."""
        return self.state.is_leader

    @property
    def leader(self) -> int:
        """The leader's broker id, -1 when there is none."""
        return self.state.leader

    @property
    def leader_epoch(self) -> int:
        """The leader epoch that this replica works in."""
        return self.state.leader_epoch

    @property
    def high_watermark(self) -> int:
        """The offset below which records are committed."""
        return self.state.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset below which records are committed, and every transaction has ended.

        :raises StorageError: the log's disk refused.
        """
        return self.log.last_stable_offset(self.state.high_watermark)

    def visible_end(self, isolation: FetchIsolation) -> int:
        """The offset below which such a reader is shown records. Raises StorageError."""
        if isolation is FetchIsolation.LOG_END:
            return self.log.log_end_offset
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.state.high_watermark
        return self.last_stable_offset

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas, as committed by the controller."""
        return self.state.isr

    @property
    def replicas(self) -> tuple[int, ...]:
        """The assignment, the preferred leader first."""
        return self.state.replicas

    def follower_end_offsets(self) -> dict[int, int]:
        """Broker id -> log end offset as of its last fetch (-1 unknown); empty on a follower."""
        return {r: f.log_end_offset for r, f in self.state.followers.items()}
