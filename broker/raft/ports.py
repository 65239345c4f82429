"""Needs of the quorum's core: a log, a small durable note, dice, peers."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from broker.raft.messages import EpochEnd
from broker.raft.snapshot_id import SnapshotId, SnapshotPart
from broker.raft.vote import Vote


class Flush(Protocol):
    """Work that makes records durable. It may be done anywhere, and takes what the disk takes."""

    def run(self) -> None:
        """Return when they are. OSError: the disk refused."""
        ...


class QuorumLog(Protocol):
    """The metadata log of this node. Offsets are of records, ends are exclusive."""

    @property
    def start_offset(self) -> int:
        """The first offset kept."""
        ...

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        ...

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record; 0 in an empty log."""
        ...

    @property
    def held_end(self) -> tuple[int, int]:
        """(last epoch, end offset) that this voter answers for: more than the log has, while it
        fetches again what its disk has lost."""
        ...

    @property
    def start_snapshot_id(self) -> SnapshotId | None:
        """The snapshot that ends where the log starts; None while the log is whole."""
        ...

    @property
    def latest_snapshot_id(self) -> SnapshotId | None:
        """The newest snapshot."""
        ...

    def read_snapshot(
        self, snapshot: SnapshotId, position: int, *, bytes_max: int
    ) -> SnapshotPart | None:
        """Part of a snapshot; None when there is no such snapshot (any more)."""
        ...

    def write_snapshot_part(self, snapshot: SnapshotId, position: int, data: bytes) -> None:
        """Keep bytes of a snapshot that is being fetched; position 0 begins it anew."""
        ...

    def install_snapshot(self, snapshot: SnapshotId) -> bool:
        """Let a fetched snapshot replace the whole log, once it is checked and durable; False
        when it turned out to be damaged."""
        ...

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append one batch as leader; returns the offset of its last record."""
        ...

    def append_leader_change(self, *, epoch: int, leader_id: int, voters: Sequence[int]) -> int:
        """Append the control record that opens an epoch; returns its offset."""
        ...

    def append_fetched(self, records: bytes) -> None:
        """Append whole batches as the leader sent them; they start at the end offset."""
        ...

    def read(self, offset: int, *, bytes_max: int) -> bytes:
        """Whole batches from `offset` on, at least one when there is one."""
        ...

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """The largest epoch not above `epoch` and where it ends."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Drop all records from `offset` on."""
        ...

    def begin_flush(self) -> Flush | None:
        """Makes every record durable that is appended by now; None when all are already."""
        ...

    def finish_flush(self, flush: Flush) -> int:
        """It has run: every record below this offset is durable."""
        ...


class VoteStore(Protocol):
    """Durable memory of epoch and vote."""

    def read(self) -> Vote:
        """The last vote written, or Vote() at first."""
        ...

    def write(self, vote: Vote) -> None:
        """Return when the vote is durable."""
        ...


class Dice(Protocol):
    """Chance, passed in so that tests own it (random.Random fits)."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 up to but not including `stop`."""
        ...


class Peer(Protocol):
    """A connection to another node's CONTROLLER listener (broker.server.peers.PeerClient)."""

    on_lost: Callable[[], None] | None
    """Called when a connection that stood has ended."""

    async def send(
        self, api_key: int, api_version: int, message: Any, *, timeout_s: float = ...
    ) -> Any:
        """The response message. Raises an OSError when there is none (TimeoutError is one);
        ConnectionRefusedError when nobody listens."""
        ...

    def disconnect(self) -> None:
        """Drop the connection: requests in flight fail, the next one connects anew."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...
