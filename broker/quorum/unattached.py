"""Unattached: knows an epoch but no leader; waits a while, then asks for votes."""

from typing import TYPE_CHECKING

from broker.quorum.messages import VoteRequest
from broker.quorum.state import State

if TYPE_CHECKING:
    from broker.quorum.roles import RaftRoles


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
