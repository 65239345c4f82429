"""The quorum's shell: timer, flushes, replay and waiters around the core of one node."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from broker.background import InternalError, attempt
from broker.clock import Clock
from broker.log.errors import LogError, StorageError
from broker.raft.config import QuorumConfig
from broker.raft.errors import CommittedTruncationError, NotLeaderError
from broker.raft.events import (
    Effect,
    Event,
    FlushBegun,
    FlushDue,
    Flushed,
    FlushNeeded,
    HighWatermarkAdvanced,
    LeaderChanged,
    Reply,
    RequestReceived,
    ResignRequested,
    Send,
    SnapshotFetched,
    SnapshotForced,
    SnapshotInstalled,
    Tick,
    VoteChanged,
    VoterGone,
    VoteWritten,
)
from broker.raft.flusher import Flusher
from broker.raft.messages import Request, Response
from broker.raft.metadata_log import CommittedBatch, MetadataLog
from broker.raft.network_channel import Connect, NetworkChannel
from broker.raft.ports import Dice, VoteStore
from broker.raft.snapshot_files import Snapshot
from broker.raft.snapshot_install import SnapshotInstaller
from broker.raft.states.leader import Leader
from broker.raft.states.progress import Fetched
from broker.raft.timers import DeadlineTimer
from broker.raft.voter import RaftCore
from broker.raft.waiters import Answers, CommitWaiters

REPLAY_BYTES_MAX: Final = 1024 * 1024
FAREWELL_S_MAX: Final = 0.3
OWNER: Final = "metadata quorum"

log = logging.getLogger(__name__)


class QuorumListener(Protocol):
    """Replays what is committed; called in the event loop.

    An error that it raises ends this node's part in the quorum.
    """

    def handle_committed(self, batch: CommittedBatch) -> None:
        """The next batch of the log, control batches included, is committed."""

    def prepare_snapshot(self, snapshot: Snapshot) -> Callable[[], None]:
        """In a thread: make this snapshot's state. The answer puts it in the place of all that
        was replayed before; it is called in the event loop, with nothing replayed meanwhile.
        """

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        """This node knows another leader of the quorum, or none."""

    def handle_voter_gone(self, voter_id: int) -> None:
        """This node leads, and the process of another voter is gone. May be told repeatedly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumProgress:
    """The leader's knowledge by node; times are monotonic ms, -1 when unknown."""

    voters: Mapping[int, Fetched] = field(default_factory=dict)
    observers: Mapping[int, Fetched] = field(default_factory=dict)


class QuorumNode:
    """One voter, or observer, at work.

    Set `listener`, then `start` in the event loop; give the requests of other voters to
    `handle`; `append` as leader and `wait_committed`; `stop` at the end.

    A voter whose disk fails, or whose leader contradicts what is committed, must not go on as
    if nothing were: it falls silent, so that the others elect and carry on without it, and
    calls `on_fault` once.
    """

    def __init__(
        self,
        *,
        config: QuorumConfig,
        cluster_id: str,
        log: MetadataLog,
        store: VoteStore,
        dice: Dice,
        clock: Clock,
        connect: Connect,
    ) -> None:
        self.config = config
        self.cluster_id = cluster_id
        self.log = log
        self.listener: QuorumListener | None = None
        self.on_fault: Callable[[Exception], None] | None = None
        self._clock = clock
        self._store = store
        self._snapshot = read_start(log)
        self._replayed_offset = 0 if self._snapshot is None else self._snapshot.id.end_offset
        self._core = RaftCore(
            config=config,
            log=log,
            vote=store.read(),
            dice=dice,
            now_ms=clock.monotonic_ms(),
            committed_offset=self._replayed_offset,
        )
        self._exchange = NetworkChannel(
            config=config, cluster_id=cluster_id, connect=connect, report=self._handle
        )
        self._waiters = CommitWaiters()
        self._effects: deque[Effect] = deque()
        self._is_running_effects = False
        self._is_started = False
        self._timer = DeadlineTimer(OWNER, clock, lambda: self._handle(Tick()))
        self._flusher = Flusher(on_done=self._handle, on_error=self.fail)
        self._answers = Answers()
        self._installer = SnapshotInstaller(
            read=partial(read_start, log),
            prepare=lambda snapshot: self._listener.prepare_snapshot(snapshot),
            on_installed=self._snapshot_installed,
            on_failure=lambda _owner, error: self.fail(error),
        )

    @property
    def _listener(self) -> QuorumListener:
        assert self.listener is not None, "set the listener before start"
        return self.listener

    @property
    def leader_id(self) -> int | None:
        """The leader of the quorum, when known."""
        return self._core.leader_id if self._is_started else None

    @property
    def core(self) -> RaftCore:
        """The core, to be read: epoch, high watermark."""
        return self._core

    @property
    def leader_state(self) -> Leader | None:
        """This node's state as leader; None if it does not lead."""
        state = self._core.state
        return state if isinstance(state, Leader) and self._is_started else None

    def take_snapshot(self) -> Snapshot | None:
        """The snapshot found at the start, once: what is committed later comes after it."""
        snapshot, self._snapshot = self._snapshot, None
        return snapshot

    def start(self) -> None:
        """Begin to take part; needs the running event loop and a listener."""
        self._is_started = True
        self._handle(Tick())

    async def stop(self) -> None:
        """Give leadership away, then leave."""
        self._handle(ResignRequested())
        await self._exchange.close(farewell_s=FAREWELL_S_MAX)
        await self.abandon()

    async def abandon(self) -> None:
        """Leave without a word."""
        self._is_started = False
        await self._exchange.close(farewell_s=0)
        self._timer.set(None)
        await self._installer.stop()
        await self._flusher.stop()
        self._answers.cancel()
        self._waiters.fail(self.leader_id)

    async def handle(self, request: Request) -> Response:
        """The answer to another voter's request; a fetch may wait for news.

        Raises NotLeaderError when this voter has fallen silent.
        """
        if not self._is_started:
            raise NotLeaderError(None)
        token, future = self._answers.expect()
        try:
            self._handle(RequestReceived(token=token, request=request))
            return await future
        finally:
            self._answers.forget(token)

    def append(self, values: Sequence[bytes]) -> int:
        """Append one batch as leader; the offset of its last record. Raises NotLeaderError."""
        if not self._is_started:
            raise NotLeaderError(None)
        try:
            last_offset, effects = self._core.append(values, self._clock.monotonic_ms())
            self._execute(effects)
        except NotLeaderError:
            raise
        except Exception as error:
            self.fail(error)
            raise NotLeaderError(None) from error
        return last_offset

    async def wait_committed(self, offset: int) -> None:
        """Return when the record at `offset`, appended here, is committed and replayed here.

        Raises NotLeaderError when this node stops leading first: the record may be committed
        by a successor, or lost.
        """
        if offset < self._replayed_offset:
            return
        if self.leader_state is None:
            raise NotLeaderError(self.leader_id)
        await self._waiters.add(offset)

    def progress(self) -> QuorumProgress:
        """Progress of all nodes, as the leader sees them; of none if this node does not lead."""
        state = self.leader_state
        if state is None:
            return QuorumProgress()
        now_ms, end_offset = self._clock.monotonic_ms(), self.log.end_offset
        own = Fetched(fetched_ms=now_ms, caught_up_ms=now_ms, end_offset=end_offset)
        return QuorumProgress(
            voters={**state.progress, self.config.node_id: own},
            observers=state.observers.known(now_ms),
        )

    def _handle(self, event: Event) -> None:
        if not self._is_started:
            return
        try:
            self._execute(self._core.handle(event, self._clock.monotonic_ms()))
        except Exception as error:  # noqa: BLE001  # what it was doing is half done
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Leave the quorum: a node that leads on with an image that stands still answers nobody."""
        if not self._is_started:
            return
        if not isinstance(error, LogError | OSError | CommittedTruncationError):
            log.critical("internal error in the %s", OWNER, exc_info=error)
            error = InternalError(OWNER, error)
        log.critical("the metadata quorum of this node stops: %s", error)
        self._is_started = False
        self._effects.clear()
        self._timer.set(None)
        self._waiters.fail(None)
        self._answers.fail()
        attempt(OWNER, self._listener.handle_leader_change, self._core.epoch, None)
        if self.on_fault is not None:
            self.on_fault(error)

    def _execute(self, effects: Sequence[Effect]) -> None:
        """Run effects in order; those that arise meanwhile come after them."""
        self._effects.extend(effects)
        if self._is_running_effects:
            return
        self._is_running_effects = True
        try:
            while self._effects:
                self._run_effect(self._effects.popleft())
        finally:
            self._is_running_effects = False
            self._timer.set(self._core.deadline_ms if self._is_started else None)

    def _run_effect(self, effect: Effect) -> None:
        match effect:
            case Send(peer=peer, request=request):
                self._exchange.send(peer, request)
            case Reply(token=token, response=response):
                self._answers.give(token, response)
            case FlushNeeded():
                asyncio.get_running_loop().call_soon(self._handle, FlushDue())
            case FlushBegun() | VoteChanged() | SnapshotFetched():
                self._flusher.start(*_disk_work(effect, self.log, self._store))
            case HighWatermarkAdvanced(high_watermark=high_watermark):
                self._replay(high_watermark)
            case SnapshotInstalled():
                self._installer.begin()
            case LeaderChanged(epoch=epoch, leader_id=leader_id):
                self._handle_leader_change(epoch, leader_id)
            case VoterGone(voter_id=voter_id):
                self._listener.handle_voter_gone(voter_id)

    def _snapshot_installed(self, end_offset: int) -> None:
        log.info("metadata quorum: the leader's snapshot at offset %d", end_offset)
        self._replayed_offset = end_offset
        self._replay(self._core.high_watermark)

    def _handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        log.info("metadata quorum: epoch %d, leader %s", epoch, leader_id)
        if leader_id != self.config.node_id:
            self._waiters.fail(leader_id)
        self._listener.handle_leader_change(epoch, leader_id)

    def _replay(self, high_watermark: int) -> None:
        if self._installer.is_busy:
            return
        while self._replayed_offset < high_watermark:
            for batch in self.log.batches(
                self._replayed_offset, max_offset=high_watermark, bytes_max=REPLAY_BYTES_MAX
            ):
                self._listener.handle_committed(batch)
                self._replayed_offset = batch.last_offset + 1
        self._waiters.release(self._replayed_offset)


def _disk_work(
    effect: FlushBegun | VoteChanged | SnapshotFetched, metadata_log: MetadataLog, store: VoteStore
) -> tuple[Callable[[], None], Event]:
    """Work for the thread of the disk, and the event that reports its end."""
    match effect:
        case FlushBegun(flush=flush):
            return flush.run, Flushed(flush=flush)
        case VoteChanged(vote=vote):
            return partial(store.write, vote), VoteWritten(vote=vote)
        case SnapshotFetched(snapshot=snapshot):
            adopt = partial(metadata_log.snapshots.adopt, snapshot)
            return adopt, SnapshotForced(snapshot=snapshot)


def read_start(metadata_log: MetadataLog) -> Snapshot | None:
    """The snapshot to begin with; None when the log tells everything from its beginning.

    :raises StorageError: the log was cut behind a snapshot, and no snapshot can be read.
    """
    snapshot = metadata_log.read_latest_snapshot()
    start_offset = metadata_log.start_offset
    if start_offset > (0 if snapshot is None else snapshot.id.end_offset):
        raise StorageError(
            f"The metadata before offset {start_offset} cannot be read",
            "the log starts there, and the .checkpoint files beside it are missing or damaged",
            "Keep the directory: it holds this node's vote. Copy the newest .checkpoint file from "
            "__cluster_metadata-0 of a node that runs, or of a backup, into it, and start again",
        )
    return snapshot
