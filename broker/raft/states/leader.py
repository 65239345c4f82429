"""Leader: appends, serves fetches, and commits what a majority has flushed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.raft.events import RequestFailed, ResponseReceived, VoterGone
from broker.raft.messages import (
    BeginEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RpcError,
)
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
from broker.raft.states.state import Backoff, State

if TYPE_CHECKING:
    from broker.raft.states.roles import RaftRoles


@dataclass(slots=True, kw_only=True)
class Progress(Fetched):
    """A leader's knowledge of another voter, and when it next announces itself to it."""

    backoff: Backoff
    has_fetched: bool = False
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

    A voter that has not fetched for longer than a long poll lasts gets the announcement again;
    when its port then refuses the connection its process is gone, which is reported.
    """

    name = "leader"

    def __init__(self, core: "RaftRoles") -> None:
        self._node_id = core.config.node_id
        self.epoch_start_offset = core.log.end_offset
        self.flushed_offset = core.high_watermark
        self.progress = {
            peer: Progress(backoff=core.new_backoff(), fetched_ms=core.now_ms)
            for peer in core.config.other_ids
        }
        self.observers = Observers()
        self._parked: dict[int, Parked] = {}
        self._check_at_ms = core.now_ms + core.config.check_quorum_ms

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

    def enter(self, core: "RaftRoles") -> None:
        """Open the epoch in the log and tell everybody."""
        core.log.append_leader_change(
            epoch=core.epoch, leader_id=self._node_id, voters=core.config.voter_ids
        )
        core.request_flush()
        for peer in self.progress:
            self._announce(core, peer)

    def leave(self, core: "RaftRoles") -> None:
        """Answer everybody who waits."""
        for parked in self._parked.values():
            core.refuse_fetch(parked.token, RpcError.NOT_LEADER_OR_FOLLOWER)
        self._parked.clear()

    def tick(self, core: "RaftRoles") -> None:
        """Count the followers, repeat announcements, end long polls."""
        if core.now_ms >= self._check_at_ms and not self._check_quorum(core):
            core.resign()
            return
        for peer, progress in self.progress.items():
            if progress.announce_at_ms is not None and progress.announce_at_ms <= core.now_ms:
                self._announce(core, peer)
        for peer, parked in list(self._parked.items()):
            if parked.deadline_ms <= core.now_ms:
                del self._parked[peer]
                core.reply(parked.token, build_answer(core, parked.request))

    def handle_flushed(self, core: "RaftRoles", offset: int) -> None:
        """The own log is durable so far: count it."""
        self.flushed_offset = max(self.flushed_offset, offset)
        self._maybe_commit(core)

    def handle_appended(self, core: "RaftRoles") -> None:
        """New records: serve who waits for them; they may be flushed there as well as here."""
        self._serve_parked(core)

    def handle_response(self, core: "RaftRoles", event: ResponseReceived) -> None:
        """A voter heard the announcement."""
        if isinstance(event.request, BeginEpochRequest):
            progress = self.progress[event.peer]
            progress.announce_at_ms = core.now_ms + core.config.silence_ms
            progress.backoff.reset()

    def handle_failure(self, core: "RaftRoles", event: RequestFailed) -> None:
        """Announce again later; report a voter whose port is closed."""
        if not isinstance(event.request, BeginEpochRequest) or event.request.epoch != core.epoch:
            return
        progress = self.progress[event.peer]
        progress.announce_at_ms = core.now_ms + progress.backoff.next_ms()
        is_silent = core.now_ms - progress.fetched_ms >= core.config.silence_ms
        if event.is_refused and (is_silent or not progress.has_fetched):
            core.emit(VoterGone(voter_id=event.peer))

    def handle_fetch(self, core: "RaftRoles", token: int, request: FetchRequest) -> None:
        """Take the acknowledgement in, then answer now or when there is news."""
        replaced = self._parked.pop(request.replica_id, None)
        if replaced is not None:
            core.reply(replaced.token, build_answer(core, replaced.request))
        snapshot = find_snapshot(core, request)
        if snapshot is not None:
            core.reply(token, build_snapshot_hint(core, snapshot))
            return
        diverging = find_divergence(core, request)
        if diverging is not None:
            core.reply(token, build_divergence(core, diverging))
            return
        self._note_fetch(core, request)
        self._maybe_commit(core)
        if core.state is self:
            self._answer_or_park(core, token, request)

    def handle_fetch_snapshot(
        self, core: "RaftRoles", token: int, request: FetchSnapshotRequest
    ) -> None:
        """A node that fetches a snapshot is alive, but acknowledges nothing."""
        node_id = request.replica_id
        known = self.progress.get(node_id) or self.observers.of(node_id, core.now_ms)
        known.fetched_ms = core.now_ms
        core.reply(token, build_snapshot_answer(core, request))

    def _note_fetch(self, core: "RaftRoles", request: FetchRequest) -> None:
        node_id, voter = request.replica_id, self.progress.get(request.replica_id)
        known = voter or self.observers.of(node_id, core.now_ms)
        known.note(request, leader_end=core.log.end_offset, now_ms=core.now_ms)
        if voter is not None:
            voter.has_fetched = True
            voter.backoff.reset()
            voter.announce_at_ms = core.now_ms + core.config.silence_ms

    def _answer_or_park(self, core: "RaftRoles", token: int, request: FetchRequest) -> None:
        if has_news(core, request) or request.wait_ms_max <= 0:
            core.reply(token, build_answer(core, request))
            return
        deadline_ms = core.now_ms + request.wait_ms_max
        self._parked[request.replica_id] = Parked(
            token=token, request=request, deadline_ms=deadline_ms
        )

    def _serve_parked(self, core: "RaftRoles") -> None:
        for peer, parked in list(self._parked.items()):
            if has_news(core, parked.request):
                del self._parked[peer]
                core.reply(parked.token, build_answer(core, parked.request))

    def _maybe_commit(self, core: "RaftRoles") -> None:
        ends = [progress.end_offset for progress in self.progress.values()]
        ends = sorted([self.flushed_offset, *ends], reverse=True)
        committed = ends[core.config.majority - 1]
        if committed > self.epoch_start_offset and committed > core.high_watermark:
            core.advance_high_watermark(committed)
            self._serve_parked(core)

    def _check_quorum(self, core: "RaftRoles") -> bool:
        """Whether a majority (counting this node) fetched recently; sets the next check."""
        since_ms = core.now_ms - core.config.check_quorum_ms
        times_ms = sorted((p.fetched_ms for p in self.progress.values()), reverse=True)
        needed = core.config.majority - 1
        if needed == 0:
            self._check_at_ms = core.now_ms + core.config.check_quorum_ms
            return True
        oldest_ms = times_ms[needed - 1]
        self._check_at_ms = oldest_ms + core.config.check_quorum_ms
        return oldest_ms > since_ms

    def _announce(self, core: "RaftRoles", peer: int) -> None:
        self.progress[peer].announce_at_ms = None
        core.send(peer, BeginEpochRequest(leader_id=self._node_id, epoch=core.epoch))
