"""The voter: Raft in Kafka's shape (KIP-595, pre-vote of KIP-996), free of input and output.

`handle(event, now_ms)` returns effects; the shell (broker.raft.node, or the simulation)
carries messages, keeps one timer for `deadline_ms` and reports back. The log is a port used
synchronously; records and votes are made durable beside it, and count, or are told, once they are.
"""

from collections.abc import Sequence

from broker.raft.errors import NotLeaderError
from broker.raft.events import (
    ConnectionLost,
    Effect,
    Event,
    FlushBegun,
    FlushDue,
    Flushed,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    SnapshotForced,
    VoteWritten,
)
from broker.raft.states import requests
from broker.raft.states.leader import Leader
from broker.raft.states.roles import RaftRoles
from broker.raft.states.transition import Resign


class RaftCore(RaftRoles):
    """One voter. Not thread-safe. `handle` and `append` are its only entries."""

    @property
    def deadline_ms(self) -> int | None:
        """When a Tick is wanted next."""
        return self.state.deadline_ms

    def handle(self, event: Event, now_ms: int) -> tuple[Effect, ...]:
        """React to one event, then to the time if a deadline has passed."""
        self.now_ms = max(now_ms, self.now_ms)
        self._dispatch(event)
        deadline_ms = self.state.deadline_ms
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            self.apply(self.state.tick(self))
        return self.take_effects()

    def append(self, values: Sequence[bytes], now_ms: int) -> tuple[int, tuple[Effect, ...]]:
        """Append one batch as leader: the offset of its last record, and effects.

        Raises NotLeaderError. The records are committed once the high watermark passes them.
        """
        if not isinstance(self.state, Leader):
            raise NotLeaderError(self.leader_id)
        self.now_ms = max(now_ms, self.now_ms)
        last_offset = self.log.append(values, epoch=self.epoch)
        self.request_flush()
        self.state.serve_parked(self)
        return last_offset, self.take_effects()

    def _dispatch(self, event: Event) -> None:
        match event:
            case RequestReceived(token=token, request=request):
                requests.handle_request(self, token, request)
            case ResponseReceived():
                self._handle_response(event)
            case RequestFailed():
                self.state.handle_failure(self, event)
            case ConnectionLost(peer=peer):
                self.state.handle_connection_lost(self, peer)
            case FlushDue():
                self._begin_flush()
            case Flushed(flush=flush):
                self._note_flushed(self.log.finish_flush(flush))
            case VoteWritten(vote=vote):
                self.note_vote_written(vote)
            case SnapshotForced(snapshot=snapshot):
                self.note_snapshot_forced(snapshot)
                self.state.handle_snapshot_forced(self)
            case ResignRequested() if isinstance(self.state, Leader):
                self.apply(Resign())

    def _handle_response(self, event: ResponseReceived) -> None:
        transition = requests.adopt_epoch(self, event.response)
        if transition is None and event.response.epoch == self.epoch == event.request.epoch:
            transition = self.state.handle_response(self, event)
        self.apply(transition)

    def _begin_flush(self) -> None:
        self._is_flush_requested = False
        flush = self.log.begin_flush()
        if flush is None:
            self._note_flushed(self.log.end_offset)
        else:
            self.emit(FlushBegun(flush=flush))

    def _note_flushed(self, offset: int) -> None:
        if offset >= self.log.end_offset and not self._is_flush_requested:
            self._is_durable = True
        self.state.handle_flushed(self, offset)
