"""Unattached: knows an epoch but no leader; waits a while, then asks for votes.

An observer has none to ask for: it is seeking, and asks the voters who leads.
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.raft.events import RequestFailed, ResponseReceived
from broker.raft.messages import VoteRequest
from broker.raft.states.state import State

if TYPE_CHECKING:
    from broker.raft.states.roles import RaftRoles


class Unattached(State):
    """Waits for a leader to announce itself, until `election_deadline_ms`."""

    name = "unattached"

    def __init__(self, *, election_deadline_ms: int) -> None:
        self._deadline_ms = election_deadline_ms

    @property
    def deadline_ms(self) -> int | None:
        """When the patience ends."""
        return self._deadline_ms

    def tick(self, core: "RaftRoles") -> None:
        """Stand for election."""
        core.become_prospective(previous_leader=None)

    def grants(self, core: "RaftRoles", request: VoteRequest) -> bool:
        """One vote an epoch; a pre-vote costs nothing."""
        return request.pre_vote or core.voted_id in (None, request.candidate_id)


class Resigned(State):
    """Resigned: led this epoch and gave it up; takes no part until a successor shows up."""

    name = "resigned"

    def __init__(self, *, election_deadline_ms: int) -> None:
        self._deadline_ms = election_deadline_ms

    @property
    def deadline_ms(self) -> int | None:
        """When it joins in again."""
        return self._deadline_ms

    def tick(self, core: "RaftRoles") -> None:
        """No successor came: become an ordinary voter."""
        core.become_unattached(epoch=core.epoch, voted_id=core.voted_id)

    def grants(self, core: "RaftRoles", request: VoteRequest) -> bool:
        """It voted for itself in this epoch, but encourages a successor."""
        return request.pre_vote


class Seeking(State):
    """Seeking: an observer without a leader asks one voter after the other.

    It fetches from them as from a leader: each answer tells the responder's epoch and leader,
    which is all that is taken from it. Whom it has just given up is asked last, and for
    `doubt_until_ms` not believed to lead but on its own word: the others may not have noticed.
    """

    name = "seeking"

    def __init__(
        self,
        *,
        order: Sequence[int],
        ask_at_ms: int,
        previous_leader: int | None,
        doubt_until_ms: int,
    ) -> None:
        self.previous_leader = previous_leader
        self._order = deque(order)
        self._ask_at_ms = ask_at_ms
        self._doubt_until_ms = doubt_until_ms

    @property
    def deadline_ms(self) -> int | None:
        """When it asks the next one."""
        return self._ask_at_ms

    def enter(self, core: "RaftRoles") -> None:
        """Begin to ask."""
        self.tick(core)

    def tick(self, core: "RaftRoles") -> None:
        """Ask the next one: a voter that does not answer soon holds up nothing."""
        if core.now_ms >= self._doubt_until_ms:
            self.previous_leader = None
        self._ask_at_ms = core.now_ms + core.config.election_timeout_ms
        core.send(self._order[0], core.fetch_request(wait_ms_max=0))
        self._order.rotate(-1)

    def handle_response(self, core: "RaftRoles", event: ResponseReceived) -> None:
        """A voter of this epoch: it leads, or knows no other leader than the one doubted."""
        if event.response.leader_id == event.peer:
            core.become_follower(epoch=core.epoch, leader_id=event.peer)
        else:
            self._ask_soon(core)

    def handle_failure(self, core: "RaftRoles", event: RequestFailed) -> None:
        """The next one may answer."""
        self._ask_soon(core)

    def _ask_soon(self, core: "RaftRoles") -> None:
        soon_ms = core.now_ms + core.config.retry_backoff_ms
        self._ask_at_ms = min(self._ask_at_ms, soon_ms)
