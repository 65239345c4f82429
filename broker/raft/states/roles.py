"""The transitions between the states of a voter: the only code that replaces a state."""

from collections import deque
from typing import Any, Final

from broker.raft.errors import IllegalTransitionError
from broker.raft.events import LeaderChanged
from broker.raft.states.context import RaftContext
from broker.raft.states.election import Candidate, Prospective
from broker.raft.states.follower import Follower
from broker.raft.states.leader import Leader
from broker.raft.states.state import State
from broker.raft.states.transition import (
    BecomeCandidate,
    BecomeFollower,
    BecomeLeader,
    BecomeProspective,
    BecomeUnattached,
    Resign,
    Transition,
)
from broker.raft.states.unattached import Resigned, Seeking, Unattached
from broker.raft.vote import Vote

STORY_LENGTH_MAX: Final = 32
FIRST_ELECTION_STEP_MS: Final = 60

# From a state to the states that may follow it, within an epoch or into a later one.
TRANSITIONS: Final[dict[str, frozenset[str]]] = {
    "unattached": frozenset({"unattached", "prospective", "follower"}),
    "prospective": frozenset({"prospective", "candidate", "unattached", "follower"}),
    "candidate": frozenset({"leader", "prospective", "unattached", "follower"}),
    "leader": frozenset({"resigned", "unattached", "follower"}),
    "follower": frozenset({"prospective", "unattached", "seeking", "follower"}),
    "seeking": frozenset({"seeking", "follower"}),
    "resigned": frozenset({"unattached", "follower"}),
}


class RaftRoles(RaftContext):
    """The roles of one voter, or observer.

    Transitions (TRANSITIONS):
    - unattached: prospective after the election timeout; follower when a leader is heard of;
      unattached again in a higher epoch or after giving its vote.
    - prospective: candidate with a majority of promises; follower of a leader heard of;
      prospective again after a round without a majority.
    - candidate: leader with a majority of votes; prospective after a split vote.
    - leader: resigned when it stops or a majority is silent.
    - follower: prospective when the leader is silent; unattached when the leader resigned.
    - resigned: unattached after the election timeout.
    - any: unattached or follower in a higher epoch.

    An observer, which does not vote, is a follower or seeks one to follow: where a voter would be
    unattached or prospective, it is seeking.

    A vote or a higher epoch is durable before any message says so (RaftContext).
    """

    def __init__(self, **ports: Any) -> None:
        super().__init__(**ports)
        self._story: deque[str] = deque(maxlen=STORY_LENGTH_MAX)
        self.state: State = self._first_state()

    def apply(self, transition: Transition | None) -> None:
        """Make a transition, and those that it entails: who needs no other's vote wins at once."""
        while transition is not None:
            transition = self._transition(*self._prepare(transition))

    def _prepare(self, transition: Transition) -> tuple[State, Vote]:
        match transition:
            case BecomeUnattached():
                return self._unattached(transition)
            case BecomeProspective(previous_leader=previous_leader):
                deadline_ms = self._election_deadline_ms()
                state = Prospective(deadline_ms=deadline_ms, previous_leader=previous_leader)
                return state, self.vote
            case BecomeCandidate():
                vote = Vote(epoch=self.epoch + 1, voted_id=self.config.node_id)
                return Candidate(deadline_ms=self._election_deadline_ms()), vote
            case BecomeLeader():
                return Leader(self), self.vote
            case BecomeFollower(epoch=epoch, leader_id=leader_id):
                voted_id = self.voted_id if epoch == self.epoch else None
                follower = Follower(
                    leader_id=leader_id,
                    fetch_deadline_ms=self.now_ms + self.config.fetch_timeout_ms,
                    backoff=self.new_backoff(),
                )
                return follower, Vote(epoch=epoch, leader_id=leader_id, voted_id=voted_id)
            case Resign():
                assert isinstance(self.state, Leader)
                deadline_ms, successors = self._election_deadline_ms(), self.state.successors
                resigned = Resigned(election_deadline_ms=deadline_ms, successors=successors)
                return resigned, self.vote

    def _unattached(self, wanted: BecomeUnattached) -> tuple[State, Vote]:
        if not self.config.is_voter:
            is_same = wanted.epoch == self.epoch
            state = self._seeking(previous_leader=self.leader_id if is_same else None)
            voted_id = self.voted_id if is_same else None
            return state, Vote(epoch=wanted.epoch, voted_id=voted_id)
        deadline_ms = self._election_deadline_ms()
        if wanted.patience_ms is not None:
            deadline_ms = self.now_ms + wanted.patience_ms
        vote = Vote(epoch=wanted.epoch, voted_id=wanted.voted_id)
        return Unattached(election_deadline_ms=deadline_ms), vote

    def check_invariants(self) -> None:
        """Checks what holds between any two events; for tests. A failure begins with a name."""
        ends = (self.log.start_offset, self.high_watermark, self.log.end_offset)
        assert ends == tuple(sorted(ends)), f"HighWatermarkInLog: {ends}"
        assert self.epoch >= self.log.last_epoch, f"EpochOfLog: {self.epoch}"
        if isinstance(self.state, Leader):
            assert self.state.flushed_offset <= self.log.end_offset, "FlushedInLog"
        if isinstance(self.state, Leader | Candidate):
            assert self.voted_id == self.config.node_id, f"VoteForItself: {self.voted_id}"

    def _first_state(self) -> State:
        """Voters start a step apart, so that the first election of a new cluster is not split."""
        if not self.config.is_voter:
            return self._seeking(previous_leader=None)
        rank = self.config.voter_ids.index(self.config.node_id)
        return Unattached(election_deadline_ms=self.now_ms + rank * FIRST_ELECTION_STEP_MS)

    def _seeking(self, *, previous_leader: int | None) -> Seeking:
        voters = deque(self.config.other_ids)
        voters.rotate(self._dice.randrange(len(voters)))
        return Seeking(
            order=sorted(voters, key=lambda voter: voter == previous_leader),
            ask_at_ms=self.now_ms,
            previous_leader=previous_leader,
            doubt_until_ms=self.now_ms + self.config.fetch_timeout_ms,
        )

    def _election_deadline_ms(self) -> int:
        timeout_ms = self.config.election_timeout_ms
        return timeout_ms + self.random_deadline_ms(timeout_ms)

    def _transition(self, state: State, vote: Vote) -> Transition | None:
        known_before = (self.epoch, self.leader_id)
        self._story.append(f"{self.now_ms} ms: {self.state.name} -> {state.name}, {vote}")
        if state.name not in TRANSITIONS[self.state.name] or vote.epoch < self.epoch:
            raise IllegalTransitionError("; ".join(self._story))
        self.state.leave(self)
        self.change_vote(vote)
        self.state, self.leader_id = state, state.leader_id
        if (self.epoch, self.leader_id) != known_before:
            self.emit(LeaderChanged(epoch=self.epoch, leader_id=self.leader_id))
        return state.enter(self)
