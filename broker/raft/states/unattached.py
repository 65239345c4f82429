"""Unattached: knows an epoch but no leader; waits a while, then asks for votes.

An observer has none to ask for: it is seeking, and asks the voters who leads.
"""

from collections import deque
from collections.abc import Sequence

from broker.raft.events import RequestFailed, ResponseReceived
from broker.raft.messages import EndEpochRequest, VoteRequest
from broker.raft.states.context import RaftContext
from broker.raft.states.state import State
from broker.raft.states.transition import (
    BecomeFollower,
    BecomeProspective,
    BecomeUnattached,
    Transition,
)


class Unattached(State):
    """Waits for a leader to announce itself, until `election_deadline_ms`."""

    name = "unattached"

    def __init__(self, *, election_deadline_ms: int) -> None:
        self._deadline_ms = election_deadline_ms

    @property
    def deadline_ms(self) -> int | None:
        """When the patience ends."""
        return self._deadline_ms

    def tick(self, context: RaftContext) -> Transition | None:
        """Stand for election."""
        return BecomeProspective(previous_leader=None)

    def grants(self, context: RaftContext, request: VoteRequest) -> bool:
        """One vote an epoch; a pre-vote costs nothing."""
        return request.pre_vote or context.voted_id in (None, request.candidate_id)


class Resigned(State):
    """Resigned: led this epoch and gave it up; takes no part until a successor shows up."""

    name = "resigned"

    def __init__(self, *, election_deadline_ms: int, successors: tuple[int, ...]) -> None:
        self._deadline_ms = election_deadline_ms
        self._successors = successors

    @property
    def deadline_ms(self) -> int | None:
        """When it joins in again."""
        return self._deadline_ms

    def enter(self, context: RaftContext) -> None:
        """Tell the others who should stand first."""
        request = EndEpochRequest(
            leader_id=context.config.node_id,
            epoch=context.epoch,
            preferred_successors=self._successors,
        )
        for peer in context.config.other_ids:
            context.send(peer, request)

    def tick(self, context: RaftContext) -> Transition | None:
        """No successor came: become an ordinary voter."""
        return BecomeUnattached(epoch=context.epoch, voted_id=context.voted_id)

    def grants(self, context: RaftContext, request: VoteRequest) -> bool:
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

    def enter(self, context: RaftContext) -> None:
        """Begin to ask."""
        self.tick(context)

    def tick(self, context: RaftContext) -> None:
        """Ask the next one: a voter that does not answer soon holds up nothing."""
        if context.now_ms >= self._doubt_until_ms:
            self.previous_leader = None
        self._ask_at_ms = context.now_ms + context.config.election_timeout_ms
        context.send(self._order[0], context.fetch_request(wait_ms_max=0))
        self._order.rotate(-1)

    def handle_response(self, context: RaftContext, event: ResponseReceived) -> Transition | None:
        """A voter of this epoch: it leads, or knows no other leader than the one doubted."""
        if event.response.leader_id == event.peer:
            return BecomeFollower(epoch=context.epoch, leader_id=event.peer)
        self._ask_soon(context)
        return None

    def handle_failure(self, context: RaftContext, event: RequestFailed) -> None:
        """The next one may answer."""
        self._ask_soon(context)

    def _ask_soon(self, context: RaftContext) -> None:
        soon_ms = context.now_ms + context.config.retry_backoff_ms
        self._ask_at_ms = min(self._ask_at_ms, soon_ms)
