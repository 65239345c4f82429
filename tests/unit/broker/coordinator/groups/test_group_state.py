"""The classic group's life: joining, syncing, failing, leaving, static members."""

import pytest

from broker.coordinator.errors import CoordinatorError, IllegalTransitionError
from broker.coordinator.groups.group_events import (
    GroupProtocol,
    GroupUnloaded,
    LeaveResult,
    MemberIdentity,
)
from broker.coordinator.groups.group_session import deadline_ms
from broker.coordinator.groups.group_state import GroupState, build_group
from tests.unit.broker.coordinator.groups.driver import GroupDriver, new_driver, stable_pair


def test_first_member_leads_generation_one() -> None:
    driver = new_driver()
    joined = driver.joined(driver.join(new_member_id="a"))
    assert (joined.error, joined.member_id, joined.leader_id) == (CoordinatorError.NONE, "a", "a")
    assert (joined.generation_id, joined.protocol_name) == (1, "range")
    assert [member.metadata for member in joined.members] == [b"r"]
    assert driver.group.state is GroupState.COMPLETING_REBALANCE


def test_a_dynamic_member_must_come_back_with_the_id_it_is_given() -> None:
    driver = new_driver()
    refused = driver.joined(driver.join(new_member_id="a", requires_known_member_id=True))
    assert (refused.error, refused.member_id) == (CoordinatorError.MEMBER_ID_REQUIRED, "a")
    accepted = driver.joined(driver.join("a", requires_known_member_id=True))
    assert (accepted.error, accepted.member_id) == (CoordinatorError.NONE, "a")


def test_an_id_that_is_never_used_expires_with_the_session() -> None:
    driver = new_driver()
    driver.join(new_member_id="a", requires_known_member_id=True)
    driver.pass_time(10_000)
    assert driver.group.roster.pending == {}
    assert driver.joined(driver.join("a")).error is CoordinatorError.UNKNOWN_MEMBER_ID


def test_an_id_that_is_never_used_holds_up_no_first_member_and_no_group_without_members() -> None:
    driver = new_driver()
    driver.join(new_member_id="lost", requires_known_member_id=True)
    first = driver.join(new_member_id="a")
    assert driver.joined(first).generation_id == 1
    driver.join(new_member_id="lost too", requires_known_member_id=True)
    driver.join(new_member_id="b")
    states = [driver.group.state]
    driver.leave(MemberIdentity(member_id="a"), MemberIdentity(member_id="b"))
    states.append(driver.group.state)
    assert states == [GroupState.PREPARING_REBALANCE, GroupState.EMPTY]


def test_initial_delay_gathers_members_and_each_newcomer_extends_it() -> None:
    driver = new_driver(initial_delay_ms=3_000)
    first = driver.join(new_member_id="a")
    driver.pass_time(2_000)
    second = driver.join(new_member_id="b")
    driver.pass_time(1_000)
    assert not driver.answers
    driver.pass_time(3_000)
    assert driver.joined(first).generation_id == driver.joined(second).generation_id == 1
    assert len(driver.joined(first).members) == 2
    assert driver.joined(second).members == ()


def test_assignment_is_handed_out_only_when_it_is_stored() -> None:
    driver = new_driver()
    driver.join(new_member_id="a")
    token = driver.sync("a", {"a": b"all"})
    assert token not in driver.answers
    assert driver.stores[0].members[0].assignment == b"all"
    driver.stored()
    assert driver.synced(token).assignment == b"all"
    assert driver.group.state is GroupState.STABLE


def test_an_assignment_that_cannot_be_stored_makes_everybody_rejoin() -> None:
    driver = new_driver()
    driver.join(new_member_id="a")
    token = driver.sync("a", {"a": b"all"})
    driver.stored(CoordinatorError.COORDINATOR_NOT_AVAILABLE)
    assert driver.synced(token).error is CoordinatorError.COORDINATOR_NOT_AVAILABLE
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert driver.heartbeat("a") is CoordinatorError.REBALANCE_IN_PROGRESS


def test_a_newcomer_rebalances_a_stable_group() -> None:
    driver = stable_pair()
    token = driver.join(new_member_id="c")
    assert driver.heartbeat("a") is CoordinatorError.REBALANCE_IN_PROGRESS
    driver.join("a")
    driver.join("b")
    assert driver.joined(token).generation_id == driver.group.generation_id == 3
    assert driver.joined(token).leader_id == "a"


def test_who_does_not_rejoin_in_time_is_out() -> None:
    driver = stable_pair()
    driver.join(new_member_id="c")
    driver.join("a")
    for _ in range(6):
        driver.pass_time(10_000 - 1)
        driver.heartbeat("b")
    driver.pass_time(10)
    assert sorted(driver.group.roster.members) == ["a", "c"]
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert driver.heartbeat("b") is CoordinatorError.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_and_heartbeats_keep_the_others() -> None:
    driver = stable_pair()
    driver.pass_time(6_000)
    assert driver.heartbeat("a") is CoordinatorError.NONE
    driver.pass_time(6_000)
    assert list(driver.group.roster.members) == ["a"]
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_a_member_that_waits_for_its_answer_does_not_expire() -> None:
    driver = stable_pair()
    token = driver.join("a", protocols=(GroupProtocol(name="range", metadata=b"changed"),))
    for _ in range(3):
        driver.pass_time(9_000)
        driver.heartbeat("b")
    assert "a" in driver.group.roster.members
    driver.join("b")
    assert driver.joined(token).error is CoordinatorError.NONE


def test_who_never_syncs_is_dropped_after_the_rebalance_timeout() -> None:
    driver = new_driver()
    driver.join(new_member_id="a")
    driver.join(new_member_id="b")
    driver.join("a")
    driver.sync("a", {"a": b"0", "b": b"1"})
    driver.stored()
    for _ in range(7):
        driver.pass_time(9_000)
        driver.heartbeat("a")
        driver.heartbeat("b")
    assert list(driver.group.roster.members) == ["a"]


def test_heartbeats_are_checked_for_generation_and_member() -> None:
    driver = stable_pair()
    assert driver.heartbeat("a", generation_id=1) is CoordinatorError.ILLEGAL_GENERATION
    assert driver.heartbeat("nobody") is CoordinatorError.UNKNOWN_MEMBER_ID


def test_the_last_leave_empties_the_group_and_stores_that() -> None:
    driver = stable_pair()
    token = driver.leave(MemberIdentity(member_id="a"), MemberIdentity(member_id="nobody"))
    result = driver.answers[token]
    assert isinstance(result, LeaveResult)
    assert [e for _, e in result.members] == [
        CoordinatorError.NONE,
        CoordinatorError.UNKNOWN_MEMBER_ID,
    ]
    driver.leave(MemberIdentity(member_id="b"))
    assert driver.group.state is GroupState.EMPTY
    assert driver.stores[-1].members == ()
    assert driver.stores[-1].protocol_type == "consumer"
    assert deadline_ms(driver.group) is None


def test_a_follower_that_repeats_its_join_learns_the_running_generation() -> None:
    driver = stable_pair()
    assert driver.joined(driver.join("b")).generation_id == 2
    assert driver.group.state is GroupState.STABLE


def test_the_leader_that_rejoins_starts_a_rebalance() -> None:
    driver = stable_pair()
    token = driver.join("a")
    assert token not in driver.answers
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_protocols_without_a_common_one_are_refused() -> None:
    driver = stable_pair()
    other = (GroupProtocol(name="sticky", metadata=b""),)
    assert driver.joined(driver.join(protocols=other)).error is (
        CoordinatorError.INCONSISTENT_GROUP_PROTOCOL
    )
    assert driver.joined(driver.join(protocol_type="connect")).error is (
        CoordinatorError.INCONSISTENT_GROUP_PROTOCOL
    )


def test_the_protocol_is_voted_among_those_that_all_offer() -> None:
    first = (GroupProtocol(name="range", metadata=b"1"), GroupProtocol(name="sticky", metadata=b""))
    second = (GroupProtocol(name="sticky", metadata=b""), GroupProtocol(name="range", metadata=b""))
    third = (GroupProtocol(name="sticky", metadata=b"3"),)
    driver = new_driver(initial_delay_ms=100)
    for name, protocols in (("a", first), ("b", second), ("c", third)):
        driver.join(new_member_id=name, protocols=protocols)
    driver.pass_time(100)
    driver.pass_time(100)
    assert driver.group.protocol_name == "sticky"


def _static_pair() -> GroupDriver:
    driver = new_driver()
    driver.join(new_member_id="a", instance="I")
    driver.join(new_member_id="b", instance="J")
    driver.join("a", instance="I")
    driver.sync("a", {"a": b"0", "b": b"1"}, instance="I")
    driver.sync("b", instance="J")
    driver.stored()
    return driver


def test_a_restarted_static_member_takes_its_seat_without_a_rebalance() -> None:
    driver = _static_pair()
    joined = driver.joined(driver.join(new_member_id="b2", instance="J"))
    assert (joined.error, joined.member_id, joined.generation_id) == (
        CoordinatorError.NONE,
        "b2",
        2,
    )
    assert driver.group.state is GroupState.STABLE
    assert driver.heartbeat("b", instance="J") is CoordinatorError.FENCED_INSTANCE_ID
    assert driver.synced(driver.sync("b2", instance="J")).assignment == b"1"
    assert [member.member_id for member in driver.stores[0].members] == ["a", "b2"]


@pytest.mark.parametrize("may_skip", [True, False])
def test_a_restarted_static_leader_does_not_assign_again(may_skip: bool) -> None:
    driver = _static_pair()
    token = driver.join(new_member_id="a2", instance="I", may_skip_assignment=may_skip)
    joined = driver.joined(token)
    assert joined.skip_assignment is may_skip
    assert (joined.leader_id == "a2") is may_skip
    assert len(joined.members) == (2 if may_skip else 0)
    assert driver.group.state is GroupState.STABLE


def test_a_static_member_leaves_by_its_instance_id() -> None:
    driver = _static_pair()
    driver.leave(MemberIdentity(member_id="", group_instance_id="J"))
    assert list(driver.group.roster.static) == ["I"]


def test_unloading_sends_everybody_who_waits_away() -> None:
    driver = stable_pair()
    token = driver.join(new_member_id="c")
    driver.drive(GroupUnloaded(now_ms=driver.now_ms, error=CoordinatorError.NOT_COORDINATOR))
    assert driver.joined(token).error is CoordinatorError.NOT_COORDINATOR
    assert driver.heartbeat("a") is CoordinatorError.COORDINATOR_NOT_AVAILABLE


def test_a_group_comes_back_from_its_snapshot() -> None:
    driver = stable_pair()
    loaded = build_group(
        driver.group.snapshot(), now_ms=500, wall_ms=0, initial_delay_ms=0, size_max=10
    )
    loaded.check_invariants()
    again = GroupDriver(loaded, now_ms=500)
    assert again.heartbeat("a", generation_id=2) is CoordinatorError.NONE
    assert again.synced(again.sync("b")).assignment == b"1"
    again.pass_time(10_000)
    assert again.group.state is GroupState.EMPTY


def test_a_forbidden_transition_tells_the_story() -> None:
    driver = stable_pair()
    with pytest.raises(IllegalTransitionError, match="assignment stored"):
        driver.group.move(GroupState.EMPTY, 0, "a bug")
