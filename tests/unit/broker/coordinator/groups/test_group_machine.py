"""Whatever a group is asked, in whatever order, its parts agree and every request is answered."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_events import GroupProtocol, GroupUnloaded, MemberIdentity
from broker.coordinator.groups.group_session import deadline_ms
from broker.coordinator.groups.group_state import GroupState
from tests.unit.broker.coordinator.groups.driver import new_driver

NAMES = st.sampled_from([f"m{n}" for n in range(6)])
INSTANCES = st.sampled_from([None, None, "I", "J"])
OFFERS = st.sampled_from(
    [
        (GroupProtocol(name="range", metadata=b"1"),),
        (GroupProtocol(name="range", metadata=b"2"), GroupProtocol(name="sticky", metadata=b"")),
        (GroupProtocol(name="sticky", metadata=b"3"), GroupProtocol(name="range", metadata=b"")),
    ]
)


class GroupMachine(RuleBasedStateMachine):
    """Random members doing random things; `driver` checks the invariants after every event."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = new_driver(initial_delay_ms=3_000)
        self.fresh = 0
        self.asked: set[int] = set()
        self.generation_id = 0

    def _instance_of(self, member_id: str) -> str | None:
        member = self.driver.group.roster.members.get(member_id)
        return None if member is None else member.group_instance_id

    @rule(instance=INSTANCES, offers=OFFERS, requires=st.booleans(), skips=st.booleans())
    def join_new(
        self,
        instance: str | None,
        offers: tuple[GroupProtocol, ...],
        requires: bool,
        skips: bool,
    ) -> None:
        self.fresh += 1
        token = self.driver.join(
            new_member_id=f"m{self.fresh % 6}-{self.fresh}",
            instance=instance,
            protocols=offers,
            requires_known_member_id=requires,
            may_skip_assignment=skips,
        )
        self.asked.add(token)

    def _someone(self, choice: int) -> str | None:
        roster = self.driver.group.roster
        ids = [*roster.members, *roster.pending]
        return ids[choice % len(ids)] if ids else None

    @rule(choice=st.integers(0, 9), offers=OFFERS)
    def rejoin(self, choice: int, offers: tuple[GroupProtocol, ...]) -> None:
        member_id = self._someone(choice) or "nobody"
        instance = self._instance_of(member_id)
        self.asked.add(self.driver.join(member_id, instance=instance, protocols=offers))

    @rule(choice=st.integers(0, 9), is_old=st.booleans())
    def sync(self, choice: int, is_old: bool) -> None:
        group = self.driver.group
        member_id = self._someone(choice) or "nobody"
        assignments = {name: name.encode() for name in group.roster.members}
        leads = member_id == group.leader_id
        token = self.driver.sync(
            member_id,
            assignments if leads else None,
            generation_id=group.generation_id - is_old,
            instance=self._instance_of(member_id),
        )
        self.asked.add(token)

    @precondition(lambda self: self.driver.stores)
    @rule(fails=st.booleans())
    def store(self, fails: bool) -> None:
        error = CoordinatorError.COORDINATOR_NOT_AVAILABLE if fails else CoordinatorError.NONE
        self.driver.stored(error)

    @rule(choice=st.integers(0, 9))
    def heartbeat(self, choice: int) -> None:
        self.driver.heartbeat(self._someone(choice) or "nobody")

    @rule(choice=st.integers(0, 9))
    def leave(self, choice: int) -> None:
        member_id = self._someone(choice) or "nobody"
        self.asked.add(self.driver.leave(MemberIdentity(member_id=member_id)))

    @rule(ms=st.sampled_from([1, 1_000, 5_000, 9_999, 60_000]))
    def wait(self, ms: int) -> None:
        self.driver.pass_time(ms)

    @invariant()
    def generation_never_goes_back(self) -> None:
        assert self.driver.group.generation_id >= self.generation_id
        self.generation_id = self.driver.group.generation_id

    @invariant()
    def whoever_waits_has_a_deadline(self) -> None:
        group = self.driver.group
        if len(group.roster) and not self.driver.stores:
            assert deadline_ms(group) is not None

    def teardown(self) -> None:
        """Left alone, the group empties; in the end nobody is left without an answer."""
        while self.driver.stores:
            self.driver.stored()
        for _ in range(50):
            self.driver.pass_time(60_000)
        assert self.driver.group.state is GroupState.EMPTY
        assert not self.driver.group.roster.members
        unload = GroupUnloaded(now_ms=self.driver.now_ms, error=CoordinatorError.NOT_COORDINATOR)
        self.driver.drive(unload)
        assert self.asked <= set(self.driver.answers)


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
