"""group.max.size (KIP-389), and ids that were handed out and never used."""

import pytest

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_state import GroupState, build_group
from broker.coordinator.groups.roster import PENDING_BYTES_MAX
from tests.unit.broker.coordinator.groups.driver import GroupDriver, new_driver, stable_pair


def _of_size(size_max: int) -> GroupDriver:
    driver = stable_pair()
    driver.group.size_max = size_max
    return driver


def test_a_newcomer_to_a_full_group_is_refused_and_gets_no_id() -> None:
    driver = _of_size(2)
    refused = driver.joined(driver.join(new_member_id="c", requires_known_member_id=True))
    assert (refused.error, refused.member_id) == (CoordinatorError.GROUP_MAX_SIZE_REACHED, "")
    assert driver.group.state is GroupState.STABLE
    assert not driver.group.roster.pending


def test_an_id_whose_place_was_taken_is_forgotten_and_holds_nobody_up() -> None:
    driver = _of_size(3)
    driver.join(new_member_id="late", requires_known_member_id=True)
    driver.join(new_member_id="c")
    driver.join("a")
    driver.join("b")
    assert driver.joined(driver.join("late")).error is CoordinatorError.GROUP_MAX_SIZE_REACHED
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert set(driver.group.roster.members) == {"a", "b", "c"}


def test_while_members_rejoin_those_that_came_back_count() -> None:
    """A member that does not come back keeps nobody out; the last beyond the size is out."""
    driver = _of_size(2)
    driver.join("a")
    newcomer = driver.join(new_member_id="c")
    assert newcomer not in driver.answers
    refused = driver.joined(driver.join("b"))
    assert (refused.error, refused.member_id) == (CoordinatorError.GROUP_MAX_SIZE_REACHED, "")
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert set(driver.group.roster.members) == {"a", "c"}


@pytest.mark.parametrize("size_max", [1, 2])
def test_a_group_that_is_read_with_too_many_members_rebalances(size_max: int) -> None:
    driver = stable_pair()
    driver.sync("a", {"a": b"0", "b": b"1"})
    group = build_group(
        driver.group.snapshot(), now_ms=0, wall_ms=0, initial_delay_ms=0, size_max=size_max
    )
    is_over = size_max == 1
    assert (group.state is GroupState.PREPARING_REBALANCE) == is_over
    again = GroupDriver(group)
    expected = CoordinatorError.REBALANCE_IN_PROGRESS if is_over else CoordinatorError.NONE
    assert again.heartbeat("b") is expected


def test_a_static_member_that_restarts_takes_over_its_place_in_a_full_group() -> None:
    driver = new_driver()
    driver.join(new_member_id="old", instance="I")
    driver.sync("old", {"old": b"0"}, instance="I")
    driver.stored()
    driver.group.size_max = 1
    assert (
        driver.joined(driver.join(new_member_id="new", instance="I")).error is CoordinatorError.NONE
    )


def test_ids_that_are_never_used_are_bounded_in_bytes() -> None:
    driver = new_driver()
    for number in range(100):
        driver.join(new_member_id=f"{'x' * 32_767}-{number}", requires_known_member_id=True)
    pending = driver.group.roster.pending
    assert sum(len(member_id) for member_id in pending) <= PENDING_BYTES_MAX
    newest = f"{'x' * 32_767}-99"
    assert newest in pending
    forgotten = driver.joined(driver.join(f"{'x' * 32_767}-0"))
    assert forgotten.error is CoordinatorError.UNKNOWN_MEMBER_ID, "the client asks for a new one"
    driver.join(newest)
    assert newest in driver.group.roster.members
