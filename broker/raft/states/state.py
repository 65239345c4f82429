"""Base of a voter's states.

Rules of this room: only a state's methods change that state; only RaftCore.transition replaces
it; no state knows how messages travel or what time it is other than by `core.now_ms`.
"""

from typing import TYPE_CHECKING, ClassVar

from broker.raft.events import RequestFailed, ResponseReceived
from broker.raft.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    RpcError,
    VoteRequest,
)

if TYPE_CHECKING:
    from broker.raft.states.roles import RaftRoles


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

    def enter(self, core: "RaftRoles") -> None:
        """Begin; called once by the transition."""

    def leave(self, core: "RaftRoles") -> None:
        """End; called once, before the next state enters."""

    def tick(self, core: "RaftRoles") -> None:
        """Time has passed; do what is due."""

    def grants(self, core: "RaftRoles", request: VoteRequest) -> bool:
        """Whether this role gives its vote to an up-to-date log."""
        return False

    def handle_fetch(self, core: "RaftRoles", token: int, request: FetchRequest) -> None:
        """Only a leader serves records."""
        core.refuse_fetch(token, RpcError.NOT_LEADER_OR_FOLLOWER)

    def handle_fetch_snapshot(
        self, core: "RaftRoles", token: int, request: FetchSnapshotRequest
    ) -> None:
        """Only a leader serves snapshots."""
        core.refuse_fetch_snapshot(token, request, RpcError.NOT_LEADER_OR_FOLLOWER)

    def handle_response(self, core: "RaftRoles", event: ResponseReceived) -> None:
        """A response of this epoch arrived."""

    def handle_failure(self, core: "RaftRoles", event: RequestFailed) -> None:
        """A request got no answer."""

    def handle_flushed(self, core: "RaftRoles", offset: int) -> None:
        """The own log is durable below this offset."""

    def handle_snapshot_forced(self, core: "RaftRoles") -> None:
        """A fetched snapshot has taken the log's place, or is damaged."""


class Backoff:
    """Growing pauses between retries to one peer."""

    def __init__(self, *, first_ms: int, max_ms: int) -> None:
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._failures = 0

    def next_ms(self) -> int:
        """The pause after one more failure; four quick ones first, then doubling."""
        self._failures += 1
        return int(min(self._first_ms << max(0, self._failures - 4), self._max_ms))

    def reset(self) -> None:
        """After a success."""
        self._failures = 0
