"""Fetch sessions of followers (KIP-227): only what changed crosses the wire.

A session remembers where its follower stands in every partition. A request names the partitions
whose position moved; an answer the partitions that have data, an error, or a new high watermark
or log start offset. A thousand idle partitions cost an empty request and an empty answer.
"""

from typing import NamedTuple

from broker.protocol.hot.fetch import FetchPosition
from broker.replication.leader.fetch_operation import FetchOperation
from broker.replication.partition.partition import Partition

SESSION_EPOCH_MAX = 2**31 - 1


class KnownOffsets(NamedTuple):
    """Offsets that the follower was last told of a partition."""

    high_watermark: int
    log_start_offset: int


NOTHING_KNOWN = KnownOffsets(-1, -1)


class FetchSession:
    """One follower's session: the `Follower` (partition.partition) of its partitions."""

    def __init__(self, *, session_id: int, replica_id: int) -> None:
        self.session_id = session_id
        self.replica_id = replica_id
        self.replica_epoch = -1
        self.next_epoch = 1
        self.positions: dict[tuple[bytes, int], FetchPosition] = {}
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
