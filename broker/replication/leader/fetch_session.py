"""Fetches that wait for data, and fetch sessions of followers (KIP-227).

Of a session only what changed crosses the wire. It remembers where its follower stands in every
partition. A request names the partitions whose position moved; an answer the partitions that have
data, an error, or a new high watermark or log start offset. A thousand idle partitions cost an
empty request and an empty answer.
"""

from collections.abc import Callable
from typing import NamedTuple

from broker.protocol.hot.fetch import NO_SESSION, FetchPosition, FetchRequest, PartitionData
from broker.replication.partition.partition import Partition
from broker.replication.timer_wheel import NOT_WAITING

SESSION_EPOCH_MAX = 2**31 - 1

Key = tuple[str | bytes, int]
"""(topic name or id, partition), as the request has it."""

OnFetched = Callable[["FetchAnswer"], None]


class FetchAnswer:
    """Answer of a fetch, by partition in the request's order."""

    __slots__ = ("results", "session_error", "session_id")

    def __init__(
        self,
        results: dict[Key, PartitionData],
        *,
        session_id: int = 0,
        session_error: Exception | None = None,
    ) -> None:
        self.results = results
        self.session_id = session_id
        self.session_error = session_error


class FetchOperation:
    """State between the first look and the answer.

    `pending` holds the keys to look at (again); results of the others stand. A sessionless
    request answers for every partition it names, one of a session for those that changed.
    """

    __slots__ = (
        "is_done",
        "is_urgent",
        "keys_by_partition",
        "on_done",
        "pending",
        "request",
        "results",
        "session",
        "size_bytes",
        "wake",
        "wheel_tick",
    )

    def __init__(
        self,
        request: FetchRequest,
        on_done: OnFetched,
        wake: "Callable[[FetchOperation, bool], None]",
        session: "FetchSession | None",
    ) -> None:
        self.request = request
        self.on_done = on_done
        self.wake = wake
        self.session = session
        self.results: dict[Key, PartitionData] = {}
        self.pending: dict[Key, None] = (
            dict.fromkeys(request.positions) if session is None else session.changed
        )
        self.keys_by_partition: dict[Partition, Key] = {}
        self.size_bytes = 0
        self.is_urgent = False
        self.is_done = False
        self.wheel_tick = NOT_WAITING

    def records_appended(self, partition: Partition) -> None:
        """Consumers read below the high watermark: an append alone is nothing to them."""

    def partition_changed(self, partition: Partition) -> None:
        """A parked consumer: look at this partition again."""
        self.pending[self.keys_by_partition[partition]] = None
        self.wake(self, False)

    def count_traffic(self) -> None:
        """Add what a consumer got to the traffic of its partitions."""
        for partition, key in self.keys_by_partition.items():
            partition.traffic.bytes_out += self.results[key].size_bytes

    def expire(self) -> None:
        """max_wait is over: answer with what there is."""
        self.wake(self, True)


class KnownOffsets(NamedTuple):
    """Offsets that the follower was last told of a partition."""

    high_watermark: int
    log_start_offset: int


NOTHING_KNOWN = KnownOffsets(-1, -1)


class FetchSession:
    """One follower's session: the `Follower` (partition.partition) of its partitions."""

    def __init__(self, *, replica_id: int) -> None:
        self.session_id = NO_SESSION
        self.replica_id = replica_id
        self.used_ms = 0
        self.replica_epoch = -1
        self.next_epoch = 1
        self.positions: dict[tuple[bytes, int], FetchPosition] = {}
        """Of partitions that are here and have a replica there."""
        self.known: dict[tuple[bytes, int], KnownOffsets] = {}
        self.changed: dict[tuple[str | bytes, int], None] = {}
        self.awaiting: set[tuple[bytes, int]] = set()
        """Partitions whose last answer moves the follower: not read again before it says where
        to, or a second request in flight would get the same records twice."""
        self.parked: FetchOperation | None = None

    def advance_epoch(self) -> None:
        """Expect the next request's session epoch; it wraps to 1."""
        self.next_epoch = 1 if self.next_epoch == SESSION_EPOCH_MAX else self.next_epoch + 1

    def move(self, key: tuple[bytes, int], position: FetchPosition) -> None:
        """The follower says where it stands in a partition."""
        self.positions[key] = position
        self.changed[key] = None
        self.awaiting.discard(key)

    def forget(self, key: tuple[bytes, int]) -> None:
        """The follower does not fetch this partition any more."""
        self.positions.pop(key, None)
        self.known.pop(key, None)
        self.changed.pop(key, None)
        self.awaiting.discard(key)

    def records_appended(self, partition: Partition) -> None:
        """There is something to fetch: answer the parked request."""
        self.changed[partition.key] = None
        if self.parked is not None:
            self.parked.wake(self.parked, False)

    def partition_changed(self, partition: Partition) -> None:
        """A new high watermark is worth telling, but not worth an answer of its own."""
        self.changed[partition.key] = None
