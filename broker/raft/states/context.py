"""Context of a state: log, epoch, time, dice, and effects."""

from broker.raft.config import QuorumConfig
from broker.raft.errors import CommittedTruncationError
from broker.raft.events import (
    Effect,
    FlushNeeded,
    HighWatermarkAdvanced,
    Reply,
    Send,
    SnapshotFetched,
    SnapshotInstalled,
    VoteChanged,
)
from broker.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    RpcError,
)
from broker.raft.ports import Dice, QuorumLog
from broker.raft.snapshot_id import SnapshotId
from broker.raft.states.backoff import Backoff
from broker.raft.vote import Vote


class RaftContext:
    """The surroundings of the states of one voter; collects the effects of one event.

    A vote or a higher epoch is durable before any message says so: what this voter would say
    meanwhile is held back until the disk has it.
    """

    def __init__(
        self,
        *,
        config: QuorumConfig,
        log: QuorumLog,
        vote: Vote,
        dice: Dice,
        now_ms: int,
        committed_offset: int = 0,
    ) -> None:
        self.config = config
        self.log = log
        self.now_ms = now_ms
        self.high_watermark = max(log.start_offset, committed_offset)
        self.vote = vote
        if log.last_epoch > self.vote.epoch:
            self.vote = Vote(epoch=log.last_epoch)
        self.leader_id: int | None = None
        """The leader of this epoch, when known."""
        self._dice = dice
        self._effects: list[Effect] = []
        self._unwritten_vote: Vote | None = None
        self._held_back: list[Send | Reply] = []
        """The newest request to each voter, and an answer to each request of theirs."""
        self._is_flush_requested = False
        self._is_durable = True
        self.is_adopting = False
        """Whether a fetched snapshot is on its way to the disk."""

    @property
    def epoch(self) -> int:
        """The highest epoch this node has seen."""
        return self.vote.epoch

    @property
    def lacks_records(self) -> bool:
        """Whether this voter may have acknowledged records that its disk has lost: it does not
        lead before it has them again."""
        return self.log.held_end > (self.log.last_epoch, self.log.end_offset)

    @property
    def voted_id(self) -> int | None:
        """Whom this node voted for in this epoch."""
        return self.vote.voted_id

    def emit(self, effect: Effect) -> None:
        """Want something done."""
        if self._unwritten_vote is None or not isinstance(effect, Send | Reply):
            self._effects.append(effect)
            return
        if isinstance(effect, Send):
            # Of a disk that hangs, election after election: what was to be asked before is stale.
            self._held_back = [e for e in self._held_back if _peer_of(e) != effect.peer]
        self._held_back.append(effect)

    def change_vote(self, vote: Vote) -> None:
        """Vote, or know of a later epoch, from now on."""
        if (vote.epoch, vote.voted_id) != (self.vote.epoch, self.vote.voted_id):
            self._unwritten_vote = vote
            self.emit(VoteChanged(vote=vote))
        self.vote = vote

    def note_vote_written(self, vote: Vote) -> None:
        """It is durable: say what waited for it, unless the vote has changed again."""
        if vote == self._unwritten_vote:
            self._unwritten_vote = None
            self._effects += self._held_back
            self._held_back = []

    def take_effects(self) -> tuple[Effect, ...]:
        """Everything wanted since the last call."""
        effects = tuple(self._effects)
        self._effects.clear()
        return effects

    def send(self, peer: int, request: Request) -> None:
        """Send a request."""
        self.emit(Send(peer=peer, request=request))

    def reply(self, token: int, response: Response) -> None:
        """Answer a request."""
        self.emit(Reply(token=token, response=response))

    def refuse_fetch(self, token: int, error: RpcError) -> None:
        """Answer a fetch with an error and what is known of the leader."""
        self.reply(token, FetchResponse(epoch=self.epoch, leader_id=self.leader_id, error=error))

    def refuse_fetch_snapshot(
        self, token: int, request: FetchSnapshotRequest, error: RpcError
    ) -> None:
        """Answer a fetch of a snapshot with an error and what is known of the leader."""
        response = FetchSnapshotResponse(
            epoch=self.epoch, leader_id=self.leader_id, snapshot=request.snapshot, error=error
        )
        self.reply(token, response)

    def adopt_snapshot(self, snapshot: SnapshotId) -> None:
        """Have a fetched snapshot checked and made durable; nothing is fetched meanwhile.

        :raises CommittedTruncationError: it lacks what is committed here.
        """
        _check_snapshot(self, snapshot)
        self.is_adopting = True
        self.emit(SnapshotFetched(snapshot=snapshot))

    def note_snapshot_forced(self, snapshot: SnapshotId) -> None:
        """Let it take the log's place, whatever the role is by now; not so if it is damaged.

        A leader's log has all that is committed, so a voter that needed a snapshot does not lead.

        :raises CommittedTruncationError: it lacks what is committed here.
        """
        self.is_adopting = False
        _check_snapshot(self, snapshot)
        if self.log.install_snapshot(snapshot):
            self._is_flush_requested, self._is_durable = False, True
            self.high_watermark = snapshot.end_offset
            self.emit(SnapshotInstalled(snapshot=snapshot))

    def request_flush(self) -> None:
        """Have everything appended flushed soon, once for all appends until then."""
        self._is_durable = False
        if not self._is_flush_requested:
            self._is_flush_requested = True
            self.emit(FlushNeeded())

    @property
    def is_durable(self) -> bool:
        """Whether all that was appended or fetched is on the disk, as far as was reported."""
        return self._is_durable and not self.is_adopting

    def advance_high_watermark(self, offset: int) -> None:
        """Note that all below is committed; lower news is old news."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.emit(HighWatermarkAdvanced(high_watermark=offset))

    def fetch_request(self, *, wait_ms_max: int) -> FetchRequest:
        """Request for the records after our log's end."""
        return FetchRequest(
            replica_id=self.config.node_id,
            epoch=self.epoch,
            fetch_offset=self.log.end_offset,
            last_fetched_epoch=self.log.last_epoch,
            high_watermark=self.high_watermark,
            wait_ms_max=wait_ms_max,
        )

    def random_deadline_ms(self, span_ms: int) -> int:
        """A moment within the next `span_ms`, at least 1 ms from now."""
        return self.now_ms + 1 + self._dice.randrange(max(1, span_ms))

    def new_backoff(self) -> Backoff:
        """Pauses between retries to one peer."""
        return Backoff(
            first_ms=self.config.retry_backoff_ms, max_ms=self.config.retry_backoff_ms_max
        )


def _peer_of(effect: Send | Reply) -> int | None:
    return effect.peer if isinstance(effect, Send) else None


def _check_snapshot(context: RaftContext, snapshot: SnapshotId) -> None:
    is_own_log = context.leader_id == context.config.node_id
    if snapshot.end_offset < context.high_watermark or is_own_log:
        raise CommittedTruncationError(
            f"a snapshot ends at {snapshot.end_offset}, below the high watermark "
            f"{context.high_watermark} or below what this node appended as leader"
        )
