"""The classic consumer group as a pure state machine: its state and its elementary steps.

| from                | to                  | when                                                |
|---------------------|---------------------|-----------------------------------------------------|
| Empty               | PreparingRebalance  | a first member joins                                |
| PreparingRebalance  | CompletingRebalance | all members rejoined, or the rebalance timed out    |
| PreparingRebalance  | Empty               | ... and nobody was left                             |
| CompletingRebalance | Stable              | the leader's assignment is stored                   |
| CompletingRebalance | PreparingRebalance  | a member joins, leaves, fails, or storing failed    |
| Stable              | PreparingRebalance  | a member joins, leaves, fails or changes its mind   |
| any                 | Dead                | deleted, expired, or coordinated elsewhere from now |

`group_machine.handle(group, event)` is the way in; the handlers of the single events live in
group_join and group_session and use only the steps below. After Kafka's GroupMetadata and
GroupCoordinator (KIP-62, KIP-134, KIP-345, KIP-394, KIP-814).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from broker.coordinator.errors import CoordinatorError, IllegalTransitionError
from broker.coordinator.groups.group_events import (
    Answer,
    GroupEffect,
    GroupProtocol,
    JoinedMember,
    JoinResult,
    StoreGroup,
    SyncResult,
)
from broker.coordinator.groups.roster import Member, Roster
from broker.coordinator.records import GroupSnapshot, MemberSnapshot

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""A member that never got its first answer is given up after this (Kafka's own constant)."""
STORY_LENGTH_MAX: Final = 20


class GroupState(StrEnum):
    """Kafka's words, as ListGroups and DescribeGroups show them; those of the consumer protocol
    alone are Assigning and Reconciling."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_S = GroupState
TRANSITIONS: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.PREPARING_REBALANCE: frozenset({_S.COMPLETING_REBALANCE, _S.EMPTY, _S.DEAD}),
    _S.COMPLETING_REBALANCE: frozenset({_S.STABLE, _S.PREPARING_REBALANCE, _S.DEAD}),
    _S.STABLE: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.DEAD: frozenset({_S.DEAD}),
}


@dataclass(slots=True, kw_only=True)
class InitialDelay:
    """How a first rebalance waits for more members: each newcomer extends it, up to a total."""

    step_ms: int
    remaining_ms: int
    has_newcomer: bool = False


@dataclass(slots=True, kw_only=True)
class ClassicGroup:
    """One group. Deadlines are in the clock of the events; `state_ms` is in wall time."""

    group_id: str
    initial_delay_ms: int
    wall_offset_ms: int = 0
    """Added to `now_ms` gives the wall clock for the log."""
    size_max: int = 2_147_483_647
    state: GroupState = GroupState.EMPTY
    state_ms: int = -1
    generation_id: int = 0
    protocol_type: str = ""
    """Empty for a group that only ever committed offsets."""
    protocol_name: str | None = None
    leader_id: str | None = None
    roster: Roster = field(default_factory=Roster)
    rebalance_deadline_ms: int | None = None
    """End of PreparingRebalance's wait for members, or of the wait for their SyncGroup."""
    initial_delay: InitialDelay | None = None
    effects: list[GroupEffect] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    def move(self, to: GroupState, now_ms: int, why: str) -> None:
        """Change the state along the table."""
        self.story = [*self.story[-STORY_LENGTH_MAX:], f"{self.state} -> {to}: {why}"]
        if to not in TRANSITIONS[self.state]:
            told = "\n".join(self.story)
            raise IllegalTransitionError(f"group {self.group_id}, {self.state} -> {to}:\n{told}")
        self.state = to
        self.state_ms = now_ms + self.wall_offset_ms

    def answer(self, token: int, result: JoinResult | SyncResult) -> None:
        """Answer a parked or present join or sync."""
        self.effects.append(Answer(token=token, result=result))

    def answer_sync(self, member: Member, error: CoordinatorError) -> None:
        """Answer the SyncGroup that a member waits with, with an error."""
        assert member.sync_token is not None
        self.answer(member.sync_token, SyncResult(error=error))
        member.sync_token = None

    def store(self) -> None:
        """Have the group as it stands written to the log."""
        self.effects.append(StoreGroup(snapshot=self.snapshot()))

    def prepare_rebalance(self, now_ms: int, why: str) -> None:
        """Start (or restart) gathering the members; complete at once when all are here."""
        if self.state is GroupState.PREPARING_REBALANCE:
            self.maybe_complete_join(now_ms)
            return
        if self.state is GroupState.COMPLETING_REBALANCE:
            self.fail_syncs(CoordinatorError.REBALANCE_IN_PROGRESS)
        timeout_ms = self.roster.rebalance_timeout_ms()
        wait_ms = timeout_ms
        is_first = self.state is GroupState.EMPTY
        if is_first and self.initial_delay_ms > 0:
            wait_ms = min(self.initial_delay_ms, timeout_ms)
            self.initial_delay = InitialDelay(step_ms=wait_ms, remaining_ms=timeout_ms - wait_ms)
        self.move(GroupState.PREPARING_REBALANCE, now_ms, why)
        self.rebalance_deadline_ms = now_ms + wait_ms
        if is_first and self.initial_delay is None:
            self.complete_join(now_ms)  # ids that are handed out are not waited for at first
        self.maybe_complete_join(now_ms)

    def maybe_complete_join(self, now_ms: int) -> None:
        """End the gathering early when nobody is missing and no initial delay runs; an id that was
        handed out keeps no group without members."""
        if self.state is not GroupState.PREPARING_REBALANCE or self.initial_delay is not None:
            return
        is_awaited = self.roster.pending and len(self.roster)
        if not is_awaited and all(m.join_token is not None for m in self.roster):
            self.complete_join(now_ms)

    def complete_join(self, now_ms: int) -> None:
        """Next generation: whoever has not rejoined is out (static members stay)."""
        self.initial_delay = None
        for member in [m for m in self.roster if m.join_token is None and not _is_static(m)]:
            self.roster.remove(member.member_id)
        joined = [member for member in self.roster if member.join_token is not None]
        if len(self.roster) and not joined:
            # Only static members that have not come back: wait another round for them.
            self.rebalance_deadline_ms = now_ms + self.roster.rebalance_timeout_ms()
            return
        self.generation_id += 1
        if not joined:
            self._become_empty(now_ms)
            return
        if self.leader_id not in {member.member_id for member in joined}:
            self.leader_id = joined[0].member_id
        self.protocol_name = self.roster.vote()
        self.move(GroupState.COMPLETING_REBALANCE, now_ms, f"generation {self.generation_id}")
        self.rebalance_deadline_ms = now_ms + self.roster.rebalance_timeout_ms()
        for member in self.roster:
            self._answer_joined(member, now_ms)

    def _become_empty(self, now_ms: int) -> None:
        self.protocol_name = self.leader_id = self.rebalance_deadline_ms = None
        self.move(GroupState.EMPTY, now_ms, "no members left")
        self.store()

    def _answer_joined(self, member: Member, now_ms: int) -> None:
        member.is_new = member.has_synced = False
        member.assignment = b""
        if member.join_token is not None:
            self.answer(member.join_token, self.join_result(member))
            member.join_token = None
        member.renew_session(now_ms)

    def join_result(self, member: Member, *, skip_assignment: bool = False) -> JoinResult:
        """The running generation as this member is told about it."""
        knows_all = member.member_id == self.leader_id
        return JoinResult(
            member_id=member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=self.leader_id or "",
            members=self._joined_members() if knows_all else (),
            skip_assignment=skip_assignment,
        )

    def _joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.roster
        )

    def fail_syncs(self, error: CoordinatorError) -> None:
        """Answer every parked SyncGroup with an error and forget the assignment."""
        for member in self.roster:
            member.assignment = b""
            if member.sync_token is not None:
                self.answer_sync(member, error)

    def remove_member(self, member_id: str, now_ms: int, why: str) -> None:
        """A member left or failed: answer what it still waits for and rebalance the others."""
        member = self.roster.remove(member_id)
        if member.join_token is not None:
            gone = JoinResult(error=CoordinatorError.UNKNOWN_MEMBER_ID, member_id=member_id)
            self.answer(member.join_token, gone)
        if member.sync_token is not None:
            self.answer_sync(member, CoordinatorError.UNKNOWN_MEMBER_ID)
        if self.leader_id == member_id:
            self.leader_id = None
        if self.state is not GroupState.DEAD:
            self.prepare_rebalance(now_ms, f"{member_id} {why}")

    def snapshot(self, assignments: Mapping[str, bytes] | None = None) -> GroupSnapshot:
        """State of the group for the log; `assignments` are those that wait to be stored."""
        return GroupSnapshot(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            leader_id=self.leader_id,
            state_ms=self.state_ms,
            members=tuple(
                _member_snapshot(
                    member,
                    self.protocol_name,
                    member.assignment
                    if assignments is None
                    else assignments.get(member.member_id, b""),
                )
                for member in self.roster
            ),
        )

    def check_invariants(self) -> None:
        """Raise AssertionError when the parts contradict each other."""
        roster = self.roster
        assert not set(roster.pending) & set(roster.members), "a pending id is a member"
        for instance, member_id in roster.static.items():
            assert roster.members[member_id].group_instance_id == instance
        if self.state in {GroupState.EMPTY, GroupState.DEAD}:
            assert not roster.members, f"{self.state} with members"
        if self.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
            assert self.leader_id in roster.members, "no leader"
            assert self.protocol_name in roster.candidate_protocols()
            assert all(member.join_token is None for member in roster), "a join left waiting"
        if self.state is not GroupState.COMPLETING_REBALANCE:
            assert all(member.sync_token is None for member in roster), "a sync left waiting"
        if self.state is GroupState.PREPARING_REBALANCE:
            assert self.rebalance_deadline_ms is not None, "a rebalance without an end"


def build_group(
    snapshot: GroupSnapshot, *, now_ms: int, wall_ms: int, initial_delay_ms: int, size_max: int
) -> ClassicGroup:
    """A group as it comes back from the log: Stable with fresh sessions, or Empty.

    One with more members than group.max.size rebalances at once, so that the last ones are out.
    """
    group = ClassicGroup(
        group_id=snapshot.group_id,
        initial_delay_ms=initial_delay_ms,
        wall_offset_ms=wall_ms - now_ms,
        size_max=size_max,
        state=GroupState.STABLE if snapshot.members else GroupState.EMPTY,
        state_ms=snapshot.state_ms,
        generation_id=snapshot.generation_id,
        protocol_type=snapshot.protocol_type,
        protocol_name=snapshot.protocol_name,
        leader_id=snapshot.leader_id,
    )
    for stored in snapshot.members:
        member = Member(
            member_id=stored.member_id,
            group_instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout_ms,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            protocols=(
                GroupProtocol(name=snapshot.protocol_name or "", metadata=stored.subscription),
            ),
            assignment=stored.assignment,
            has_synced=True,
            is_new=False,
        )
        member.renew_session(now_ms)
        group.roster.add(member)
    if len(group.roster) > size_max:
        group.prepare_rebalance(now_ms, "more members than group.max.size")
    return group


def _is_static(member: Member) -> bool:
    return member.group_instance_id is not None


def _member_snapshot(
    member: Member, protocol_name: str | None, assignment: bytes
) -> MemberSnapshot:
    return MemberSnapshot(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=assignment,
    )
