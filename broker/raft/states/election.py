"""Prospective and Candidate: the two rounds of an election.

A prospective voter asks whether it would win (KIP-996's pre-vote), which raises no epoch and so
disturbs nobody; only with a majority of promises it becomes a candidate, raises the epoch, votes
for itself and asks again in earnest.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from broker.raft.events import RequestFailed, ResponseReceived
from broker.raft.messages import VoteRequest, VoteResponse
from broker.raft.states.state import Backoff, State

if TYPE_CHECKING:
    from broker.raft.states.roles import RaftRoles


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

    def enter(self, core: "RaftRoles") -> None:
        """Vote for oneself and ask the others."""
        for peer in core.config.other_ids:
            self._ask(core, peer)
        self._count(core, core.config.node_id, granted=True)

    def tick(self, core: "RaftRoles") -> None:
        """End the round, or ask again who did not answer."""
        if core.now_ms >= self._deadline_ms:
            self.time_out(core)
            return
        due = [peer for peer, at_ms in self._retry_at_ms.items() if at_ms <= core.now_ms]
        for peer in due:
            del self._retry_at_ms[peer]
            self._ask(core, peer)

    def handle_response(self, core: "RaftRoles", event: ResponseReceived) -> None:
        """Count a vote of this very round."""
        if isinstance(event.response, VoteResponse) and self._is_ours(core, event.request):
            self._count(core, event.peer, granted=event.response.vote_granted)

    def handle_failure(self, core: "RaftRoles", event: RequestFailed) -> None:
        """Ask again a little later."""
        if self._is_ours(core, event.request):
            pause_ms = self._backoffs.setdefault(event.peer, core.new_backoff()).next_ms()
            self._retry_at_ms[event.peer] = core.now_ms + pause_ms

    @abstractmethod
    def win(self, core: "RaftRoles") -> None:
        """A majority agreed."""

    @abstractmethod
    def time_out(self, core: "RaftRoles") -> None:
        """The round is over without a majority."""

    def lose(self, core: "RaftRoles") -> None:
        """A majority can no longer be had in this round."""

    def _is_ours(self, core: "RaftRoles", request: object) -> bool:
        return (
            isinstance(request, VoteRequest)
            and request.pre_vote == self.pre_vote
            and request.epoch == core.epoch
        )

    def _ask(self, core: "RaftRoles", peer: int) -> None:
        core.send(
            peer,
            VoteRequest(
                candidate_id=core.config.node_id,
                epoch=core.epoch,
                last_epoch=core.log.last_epoch,
                last_offset=core.log.end_offset,
                pre_vote=self.pre_vote,
            ),
        )

    def _count(self, core: "RaftRoles", voter: int, *, granted: bool) -> None:
        (self._granted if granted else self._rejected).add(voter)
        majority = core.config.majority
        if len(self._granted) >= majority:
            self.win(core)
        elif len(self._rejected) > len(core.config.voters) - majority:
            self.lose(core)


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

    def win(self, core: "RaftRoles") -> None:
        """Stand in earnest."""
        core.become_candidate()

    def time_out(self, core: "RaftRoles") -> None:
        """Follow the old leader again when others hear it, else ask again."""
        if self.previous_leader is not None and self._rejected:
            core.become_follower(epoch=core.epoch, leader_id=self.previous_leader)
        else:
            core.become_prospective(previous_leader=None)

    def grants(self, core: "RaftRoles", request: VoteRequest) -> bool:
        """Any promise; and a vote that is still free in this epoch unless it has a leader."""
        if request.pre_vote:
            return True
        return self.previous_leader is None and core.voted_id in (None, request.candidate_id)


class Candidate(Election):
    """Asks for votes in a new epoch, having voted for itself."""

    name = "candidate"
    pre_vote = False

    def win(self, core: "RaftRoles") -> None:
        """Lead."""
        core.become_leader()

    def time_out(self, core: "RaftRoles") -> None:
        """Split vote: begin again with a pre-vote."""
        core.become_prospective(previous_leader=None)

    def lose(self, core: "RaftRoles") -> None:
        """Do not wait for the end of the round, but for a random while, so that rivals part."""
        self._deadline_ms = min(
            self._deadline_ms, core.random_deadline_ms(core.config.election_timeout_ms)
        )

    def grants(self, core: "RaftRoles", request: VoteRequest) -> bool:
        """Its vote is spent; promises are free."""
        return request.pre_vote
