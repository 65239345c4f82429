"""Prospective and Candidate: the two rounds of an election.

A prospective voter asks whether it would win (KIP-996's pre-vote), which raises no epoch and so
disturbs nobody; only with a majority of promises it becomes a candidate, raises the epoch, votes
for itself and asks again in earnest.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from broker.raft.events import RequestFailed, ResponseReceived
from broker.raft.messages import VoteRequest, VoteResponse
from broker.raft.states.backoff import Backoff
from broker.raft.states.context import RaftContext
from broker.raft.states.state import State
from broker.raft.states.transition import (
    BecomeCandidate,
    BecomeFollower,
    BecomeLeader,
    BecomeProspective,
    Transition,
)


class Election(State, ABC):
    """Collects votes of one round; unanswered requests are repeated with a back-off."""

    pre_vote: ClassVar[bool]

    def __init__(self, *, deadline_ms: int) -> None:
        self._deadline_ms = deadline_ms
        self._granted: set[int] = set()
        self._rejected: set[int] = set()
        self._retry_at_ms: dict[int, int] = {}
        self._backoffs: dict[int, Backoff] = {}

    @property
    def deadline_ms(self) -> int | None:
        """The next retry or the end of the round."""
        return min((self._deadline_ms, *self._retry_at_ms.values()))

    def enter(self, context: RaftContext) -> Transition | None:
        """Vote for oneself and ask the others."""
        for peer in context.config.other_ids:
            self._ask(context, peer)
        return self._count(context, context.config.node_id, granted=True)

    def tick(self, context: RaftContext) -> Transition | None:
        """End the round, or ask again who did not answer."""
        if context.now_ms >= self._deadline_ms:
            return self.time_out(context)
        due = [peer for peer, at_ms in self._retry_at_ms.items() if at_ms <= context.now_ms]
        for peer in due:
            del self._retry_at_ms[peer]
            self._ask(context, peer)
        return None

    def handle_response(self, context: RaftContext, event: ResponseReceived) -> Transition | None:
        """Count a vote of this very round."""
        if isinstance(event.response, VoteResponse) and self._is_ours(context, event.request):
            return self._count(context, event.peer, granted=event.response.vote_granted)
        return None

    def handle_failure(self, context: RaftContext, event: RequestFailed) -> None:
        """Ask again a little later."""
        if self._is_ours(context, event.request):
            pause_ms = self._backoffs.setdefault(event.peer, context.new_backoff()).next_ms()
            self._retry_at_ms[event.peer] = context.now_ms + pause_ms

    @abstractmethod
    def win(self) -> Transition:
        """A majority agreed."""

    @abstractmethod
    def time_out(self, context: RaftContext) -> Transition:
        """The round is over without a majority."""

    def lose(self, context: RaftContext) -> None:
        """A majority can no longer be had in this round."""

    def _is_ours(self, context: RaftContext, request: object) -> bool:
        return (
            isinstance(request, VoteRequest)
            and request.pre_vote == self.pre_vote
            and request.epoch == context.epoch
        )

    def _ask(self, context: RaftContext, peer: int) -> None:
        context.send(
            peer,
            VoteRequest(
                candidate_id=context.config.node_id,
                epoch=context.epoch,
                last_epoch=context.log.last_epoch,
                last_offset=context.log.end_offset,
                pre_vote=self.pre_vote,
            ),
        )

    def _count(self, context: RaftContext, voter: int, *, granted: bool) -> Transition | None:
        (self._granted if granted else self._rejected).add(voter)
        majority = context.config.majority
        if len(self._granted) >= majority and not context.lacks_records:
            return self.win()
        if len(self._rejected) > len(context.config.voters) - majority:
            self.lose(context)
        return None


class Prospective(Election):
    """Asks for promises. `previous_leader` is a leader of this epoch that went silent.

    Another voter's word that the silent leader still leads is not believed at once (two
    followers could keep each other loyal to a frozen leader for ever), only when the round ends
    without a majority.
    """

    name = "prospective"
    pre_vote = True

    def __init__(self, *, deadline_ms: int, previous_leader: int | None) -> None:
        super().__init__(deadline_ms=deadline_ms)
        self.previous_leader = previous_leader

    def win(self) -> Transition:
        """Stand in earnest."""
        return BecomeCandidate()

    def time_out(self, context: RaftContext) -> Transition:
        """Follow the old leader again when others hear it, else ask again."""
        if self.previous_leader is not None and self._rejected:
            return BecomeFollower(epoch=context.epoch, leader_id=self.previous_leader)
        return BecomeProspective(previous_leader=None)

    def grants(self, context: RaftContext, request: VoteRequest) -> bool:
        """Any promise; and a vote that is still free in this epoch unless it has a leader."""
        if request.pre_vote:
            return True
        return self.previous_leader is None and context.voted_id in (None, request.candidate_id)


class Candidate(Election):
    """Asks for votes in a new epoch, having voted for itself."""

    name = "candidate"
    pre_vote = False

    def win(self) -> Transition:
        """Lead."""
        return BecomeLeader()

    def time_out(self, context: RaftContext) -> Transition:
        """Split vote: begin again with a pre-vote."""
        return BecomeProspective(previous_leader=None)

    def lose(self, context: RaftContext) -> None:
        """Do not wait for the end of the round, but for a random while, so that rivals part."""
        self._deadline_ms = min(
            self._deadline_ms, context.random_deadline_ms(context.config.election_timeout_ms)
        )

    def grants(self, context: RaftContext, request: VoteRequest) -> bool:
        """Its vote is spent; promises are free."""
        return request.pre_vote
