"""Leader: appends, serves fetches, and commits what a majority has flushed."""

from dataclasses import dataclass

from broker.raft.events import RequestFailed, ResponseReceived, VoterGone
from broker.raft.messages import (
    BeginEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RpcError,
)
from broker.raft.states.backoff import Backoff
from broker.raft.states.context import RaftContext
from broker.raft.states.fetch_answers import (
    build_answer,
    build_divergence,
    build_snapshot_answer,
    build_snapshot_hint,
    find_divergence,
    find_snapshot,
    has_news,
)
from broker.raft.states.progress import Fetched, Observers
from broker.raft.states.state import State
from broker.raft.states.transition import Resign, Transition


@dataclass(slots=True, kw_only=True)
class Progress(Fetched):
    """A leader's knowledge of another voter, and when it next announces itself to it."""

    backoff: Backoff
    has_fetched: bool = False
    """Since the last announcement."""
    announce_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A fetch that waits for news."""

    token: int
    request: FetchRequest
    deadline_ms: int


class Leader(State):
    """Leads one epoch.

    The high watermark is the highest offset flushed by a majority, and moves only once the
    record that opened this epoch is below it (Raft's rule against counting copies of older
    epochs). A leader that a majority has not fetched from for `check_quorum_ms` resigns: it may
    be cut off, and a successor may lead already.

    Observers fetch like voters do, and count for nothing.

    A voter that has not fetched for longer than a long poll lasts, or whose connection ended, gets
    the announcement again; when its port then refuses the connection its process is gone, which
    is reported.
    """

    name = "leader"

    def __init__(self, context: RaftContext) -> None:
        self._node_id = context.config.node_id
        self.epoch_start_offset = context.log.end_offset
        self.flushed_offset = context.high_watermark
        self.progress = {
            peer: Progress(backoff=context.new_backoff(), fetched_ms=context.now_ms)
            for peer in context.config.other_ids
        }
        self.observers = Observers()
        self._parked: dict[int, Parked] = {}
        self._check_at_ms = context.now_ms + context.config.check_quorum_ms

    @property
    def leader_id(self) -> int | None:
        """Itself."""
        return self._node_id

    @property
    def deadline_ms(self) -> int | None:
        """The next parked fetch, announcement or count of the followers."""
        announcements = [
            progress.announce_at_ms
            for progress in self.progress.values()
            if progress.announce_at_ms is not None
        ]
        parked = [parked.deadline_ms for parked in self._parked.values()]
        return min((self._check_at_ms, *announcements, *parked))

    def enter(self, context: RaftContext) -> None:
        """Open the epoch in the log and tell everybody."""
        context.log.append_leader_change(
            epoch=context.epoch, leader_id=self._node_id, voters=context.config.voter_ids
        )
        context.request_flush()
        for peer in self.progress:
            self._announce(context, peer)

    @property
    def successors(self) -> tuple[int, ...]:
        """Voters, those with most of the log first."""
        return tuple(sorted(self.progress, key=lambda peer: -self.progress[peer].end_offset))

    def leave(self, context: RaftContext) -> None:
        """Answer everybody who waits."""
        for parked in self._parked.values():
            context.refuse_fetch(parked.token, RpcError.NOT_LEADER_OR_FOLLOWER)
        self._parked.clear()

    def tick(self, context: RaftContext) -> Transition | None:
        """Count the followers, repeat announcements, end long polls."""
        if context.now_ms >= self._check_at_ms and not self._check_quorum(context):
            return Resign()
        for peer, progress in self.progress.items():
            if progress.announce_at_ms is not None and progress.announce_at_ms <= context.now_ms:
                self._announce(context, peer)
        for peer, parked in list(self._parked.items()):
            if parked.deadline_ms <= context.now_ms:
                del self._parked[peer]
                context.reply(parked.token, build_answer(context, parked.request))
        return None

    def handle_flushed(self, context: RaftContext, offset: int) -> None:
        """The own log is durable so far: count it."""
        self.flushed_offset = max(self.flushed_offset, offset)
        self._maybe_commit(context)

    def handle_response(self, context: RaftContext, event: ResponseReceived) -> None:
        """A voter heard the announcement."""
        if isinstance(event.request, BeginEpochRequest):
            progress = self.progress[event.peer]
            progress.announce_at_ms = context.now_ms + context.config.silence_ms
            progress.backoff.reset()

    def handle_failure(self, context: RaftContext, event: RequestFailed) -> None:
        """Announce again later; report a voter whose port is closed."""
        if not isinstance(event.request, BeginEpochRequest) or event.request.epoch != context.epoch:
            return
        progress = self.progress[event.peer]
        progress.announce_at_ms = context.now_ms + progress.backoff.next_ms()
        if event.is_refused and not progress.has_fetched:
            context.emit(VoterGone(voter_id=event.peer))

    def handle_connection_lost(self, context: RaftContext, peer: int) -> None:
        """Ask at once whether its port is closed."""
        if peer in self.progress:
            self.progress[peer].announce_at_ms = context.now_ms

    def handle_fetch(self, context: RaftContext, token: int, request: FetchRequest) -> None:
        """Take the acknowledgement in, then answer now or when there is news."""
        replaced = self._parked.pop(request.replica_id, None)
        if replaced is not None:
            context.reply(replaced.token, build_answer(context, replaced.request))
        snapshot = find_snapshot(context, request)
        if snapshot is not None:
            context.reply(token, build_snapshot_hint(context, snapshot))
            return
        diverging = find_divergence(context, request)
        if diverging is not None:
            context.reply(token, build_divergence(context, diverging))
            return
        self._note_fetch(context, request)
        self._maybe_commit(context)
        self._answer_or_park(context, token, request)

    def handle_fetch_snapshot(
        self, context: RaftContext, token: int, request: FetchSnapshotRequest
    ) -> None:
        """A node that fetches a snapshot is alive, but acknowledges nothing."""
        node_id = request.replica_id
        known = self.progress.get(node_id) or self.observers.of(node_id, context.now_ms)
        known.fetched_ms = context.now_ms
        context.reply(token, build_snapshot_answer(context, request))

    def _note_fetch(self, context: RaftContext, request: FetchRequest) -> None:
        node_id, voter = request.replica_id, self.progress.get(request.replica_id)
        known = voter or self.observers.of(node_id, context.now_ms)
        known.note(request, leader_end=context.log.end_offset, now_ms=context.now_ms)
        if voter is not None:
            voter.has_fetched = True
            voter.backoff.reset()
            voter.announce_at_ms = context.now_ms + context.config.silence_ms

    def _answer_or_park(self, context: RaftContext, token: int, request: FetchRequest) -> None:
        if has_news(context, request) or request.wait_ms_max <= 0:
            context.reply(token, build_answer(context, request))
            return
        deadline_ms = context.now_ms + request.wait_ms_max
        self._parked[request.replica_id] = Parked(
            token=token, request=request, deadline_ms=deadline_ms
        )

    def serve_parked(self, context: RaftContext) -> None:
        """Answer who waits for what is new; it may be flushed there as well as here."""
        for peer, parked in list(self._parked.items()):
            if has_news(context, parked.request):
                del self._parked[peer]
                context.reply(parked.token, build_answer(context, parked.request))

    def _maybe_commit(self, context: RaftContext) -> None:
        ends = [progress.end_offset for progress in self.progress.values()]
        ends = sorted([self.flushed_offset, *ends], reverse=True)
        committed = ends[context.config.majority - 1]
        if committed > self.epoch_start_offset and committed > context.high_watermark:
            context.advance_high_watermark(committed)
            self.serve_parked(context)

    def _check_quorum(self, context: RaftContext) -> bool:
        """Whether a majority (counting this node) fetched recently; sets the next check."""
        since_ms = context.now_ms - context.config.check_quorum_ms
        times_ms = sorted((p.fetched_ms for p in self.progress.values()), reverse=True)
        needed = context.config.majority - 1
        if needed == 0:
            self._check_at_ms = context.now_ms + context.config.check_quorum_ms
            return True
        oldest_ms = times_ms[needed - 1]
        self._check_at_ms = oldest_ms + context.config.check_quorum_ms
        return oldest_ms > since_ms

    def _announce(self, context: RaftContext, peer: int) -> None:
        self.progress[peer].announce_at_ms = None
        self.progress[peer].has_fetched = False
        context.send(peer, BeginEpochRequest(leader_id=self._node_id, epoch=context.epoch))
