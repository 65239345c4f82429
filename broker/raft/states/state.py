"""Base of a voter's states.

Rules of this room: only a state's methods change that state; one that wants to be replaced
returns a transition, which `RaftRoles.apply` carries out at once; no state knows how messages
travel or what time it is other than by `context.now_ms`.
"""

from typing import ClassVar

from broker.raft.events import RequestFailed, ResponseReceived
from broker.raft.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    RpcError,
    VoteRequest,
)
from broker.raft.states.context import RaftContext
from broker.raft.states.transition import Transition


class State:
    """One role of a voter in one epoch; the defaults fit a role that waits."""

    name: ClassVar[str]

    @property
    def leader_id(self) -> int | None:
        """The leader of this epoch, when known."""
        return None

    @property
    def deadline_ms(self) -> int | None:
        """When `tick` wants to run; None for never."""
        return None

    def enter(self, context: RaftContext) -> Transition | None:
        """Begin; called once by the transition."""
        return None

    def leave(self, context: RaftContext) -> None:
        """End; called once, before the next state enters."""

    def tick(self, context: RaftContext) -> Transition | None:
        """Time has passed; do what is due."""
        return None

    def grants(self, context: RaftContext, request: VoteRequest) -> bool:
        """Whether this role gives its vote to an up-to-date log."""
        return False

    def handle_fetch(self, context: RaftContext, token: int, request: FetchRequest) -> None:
        """Only a leader serves records."""
        context.refuse_fetch(token, RpcError.NOT_LEADER_OR_FOLLOWER)

    def handle_fetch_snapshot(
        self, context: RaftContext, token: int, request: FetchSnapshotRequest
    ) -> None:
        """Only a leader serves snapshots."""
        context.refuse_fetch_snapshot(token, request, RpcError.NOT_LEADER_OR_FOLLOWER)

    def handle_response(self, context: RaftContext, event: ResponseReceived) -> Transition | None:
        """A response of this epoch arrived."""
        return None

    def handle_failure(self, context: RaftContext, event: RequestFailed) -> None:
        """A request got no answer."""

    def handle_connection_lost(self, context: RaftContext, peer: int) -> None:
        """The process of another voter may be gone."""

    def handle_flushed(self, context: RaftContext, offset: int) -> None:
        """The own log is durable below this offset."""

    def handle_snapshot_forced(self, context: RaftContext) -> None:
        """A fetched snapshot has taken the log's place, or is damaged."""
