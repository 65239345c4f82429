"""Follower: pulls the log from the leader of its epoch."""

from broker.raft.errors import CommittedTruncationError
from broker.raft.events import RequestFailed, ResponseReceived
from broker.raft.messages import (
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RpcError,
    VoteRequest,
)
from broker.raft.snapshot_id import SnapshotId
from broker.raft.states.backoff import Backoff
from broker.raft.states.context import RaftContext
from broker.raft.states.state import State
from broker.raft.states.transition import BecomeProspective, BecomeUnattached, Transition


class Follower(State):
    """Keeps one Fetch in flight; each fetch offset acknowledges what is flushed here.

    When no fetch succeeds for `fetch_timeout_ms` the follower stands for election; an observer
    asks the voters who leads. A refused connection says that the leader's process is gone, so the
    wait is then cut to a random part of the election timeout; this only costs an election if it
    was wrong, never safety.

    Where the leader's log does not reach back to the end of ours, its newest snapshot is fetched
    part by part and takes the log's place, once the disk has it.
    """

    name = "follower"

    def __init__(self, *, leader_id: int, fetch_deadline_ms: int, backoff: Backoff) -> None:
        self._leader_id = leader_id
        self._fetch_deadline_ms = fetch_deadline_ms
        self._backoff = backoff
        self._retry_at_ms: int | None = None
        self._fetched_ms: int | None = None
        self._is_suspicious = False
        self._in_flight: FetchRequest | FetchSnapshotRequest | None = None
        self._waits_for_flush = False
        self._snapshot: SnapshotId | None = None
        self._position = 0

    @property
    def leader_id(self) -> int | None:
        """The leader it follows."""
        return self._leader_id

    @property
    def deadline_ms(self) -> int | None:
        """The next retry or the end of trust."""
        if self._retry_at_ms is None:
            return self._fetch_deadline_ms
        return min(self._fetch_deadline_ms, self._retry_at_ms)

    def enter(self, context: RaftContext) -> None:
        """Begin to fetch, once all that this voter appended or fetched before is durable.

        A fetch offset acknowledges; acknowledging what a crash can still take would let the
        quorum lose committed records.
        """
        if context.is_durable:
            self._fetch(context)
        else:
            context.request_flush()
            self._waits_for_flush = True

    def tick(self, context: RaftContext) -> Transition | None:
        """Leave a silent leader, or try again."""
        if context.now_ms >= self._fetch_deadline_ms:
            if context.config.is_voter:
                return BecomeProspective(previous_leader=self._leader_id)
            return BecomeUnattached(epoch=context.epoch)
        if self._retry_at_ms is not None and context.now_ms >= self._retry_at_ms:
            self._fetch(context)
        return None

    def grants(self, context: RaftContext, request: VoteRequest) -> bool:
        """No vote in an epoch that has a leader; a promise only when it has gone silent."""
        if not request.pre_vote or request.candidate_id == self._leader_id:
            return request.pre_vote
        if self._is_suspicious or self._fetched_ms is None:
            return True
        silence_ms = context.now_ms - self._fetched_ms
        return silence_ms > context.config.fetch_wait_ms_max + context.config.election_timeout_ms

    def handle_response(self, context: RaftContext, event: ResponseReceived) -> Transition | None:
        """Take records in, or follow the leader's word about where the logs part."""
        if event.request is not self._in_flight:
            return None
        response = event.response
        if not isinstance(response, FetchResponse | FetchSnapshotResponse):
            return None
        if response.error is not RpcError.NONE:
            return self._handle_error(context, response)
        self._note_success(context)
        self._in_flight = None
        if isinstance(response, FetchResponse):
            self._take_records(context, response)
        else:
            self._take_part(context, response)
        if not self._waits_for_flush:
            self._fetch(context)
        return None

    def handle_flushed(self, context: RaftContext, offset: int) -> None:
        """Appended records are durable: the next fetch may acknowledge them. The disk's time is no
        silence of the leader."""
        is_next = self._waits_for_flush and not context.is_adopting
        if is_next and offset >= context.log.end_offset:
            self._disk_is_done(context)

    def handle_snapshot_forced(self, context: RaftContext) -> None:
        """A snapshot that turned out to be damaged is asked for again."""
        if self._waits_for_flush and context.is_durable:
            self._disk_is_done(context)

    def _disk_is_done(self, context: RaftContext) -> None:
        self._waits_for_flush = False
        self._fetch_deadline_ms = context.now_ms + context.config.fetch_timeout_ms
        self._fetch(context)

    def _take_records(self, context: RaftContext, response: FetchResponse) -> None:
        if response.snapshot is not None:
            self._snapshot, self._position = response.snapshot, 0
            return
        if response.diverging is not None:
            # What is left may part from the leader's log, too, so none of it counts as committed.
            self._truncate(context, response.diverging)
            return
        if response.records:
            context.log.append_fetched(response.records)
            context.request_flush()
            self._waits_for_flush = True
        context.advance_high_watermark(min(response.high_watermark, context.log.end_offset))

    def _take_part(self, context: RaftContext, response: FetchSnapshotResponse) -> None:
        """The next bytes of the snapshot; the last ones complete it."""
        if response.snapshot != self._snapshot or response.position != self._position:
            return
        context.log.write_snapshot_part(response.snapshot, response.position, response.data)
        self._position += len(response.data)
        if self._position >= response.size_bytes:
            self._snapshot = None
            self._waits_for_flush = True
            context.adopt_snapshot(response.snapshot)

    def handle_failure(self, context: RaftContext, event: RequestFailed) -> None:
        """Try again soon; a refused connection shortens the trust in the leader."""
        if event.request is not self._in_flight:
            return
        if event.is_refused and not self._is_suspicious:
            self._is_suspicious = True
            patience_ms = context.random_deadline_ms(context.config.election_timeout_ms // 2)
            self._fetch_deadline_ms = min(self._fetch_deadline_ms, patience_ms)
        self._retry_at_ms = context.now_ms + self._backoff.next_ms()

    def _handle_error(
        self, context: RaftContext, response: FetchResponse | FetchSnapshotResponse
    ) -> Transition | None:
        # A snapshot that is gone was replaced by a newer one, which the next fetch names.
        self._snapshot = None
        if response.error is RpcError.NOT_LEADER_OR_FOLLOWER:
            return BecomeUnattached(epoch=context.epoch, voted_id=context.voted_id)
        self._retry_at_ms = context.now_ms + self._backoff.next_ms()
        return None

    def _note_success(self, context: RaftContext) -> None:
        self._backoff.reset()
        self._is_suspicious = False
        self._fetched_ms = context.now_ms
        self._fetch_deadline_ms = context.now_ms + context.config.fetch_timeout_ms

    def _truncate(self, context: RaftContext, diverging: EpochEnd) -> None:
        own = context.log.end_offset_for_epoch(diverging.epoch)
        offset = min(own.end_offset, diverging.end_offset)
        if offset < context.high_watermark:
            raise CommittedTruncationError(
                f"leader {self._leader_id} of epoch {context.epoch} says the logs part at "
                f"{offset}, below the high watermark {context.high_watermark}"
            )
        context.log.truncate_to(offset)

    def _fetch(self, context: RaftContext) -> None:
        self._retry_at_ms = None
        self._in_flight = self._next_request(context)
        context.send(self._leader_id, self._in_flight)

    def _next_request(self, context: RaftContext) -> FetchRequest | FetchSnapshotRequest:
        if self._snapshot is not None:
            return FetchSnapshotRequest(
                replica_id=context.config.node_id,
                epoch=context.epoch,
                snapshot=self._snapshot,
                position=self._position,
                bytes_max=context.config.fetch_bytes_max,
            )
        return context.fetch_request(wait_ms_max=context.config.fetch_wait_ms_max)
