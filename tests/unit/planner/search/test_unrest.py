"""When a plan is worth making, and the order of replicas that stay."""

import pytest

from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.search.placement import followers_in_order, in_order
from planner.topology import Topology
from tests.unit.planner.clusters import single

HELD = (14, 12, 10, 10, 10, 10)


def crowded(held: tuple[int, ...] = HELD) -> Topology:
    """Brokers 1, 2, … hold so many replicas of one size."""
    on = [broker for broker, number in enumerate(held, 1) for _ in range(number)]
    return single(len(held), [100] * len(on), on)


KEPT = tuple(f"t-{number}" for number in range(HELD[0]))
"""All that broker 1 holds."""


def test_what_betters_neither_the_most_nor_the_fewest_is_not_moved() -> None:
    kept = plan(crowded(), PlanRequest(keep_partitions=KEPT, alternatives=1))
    assert kept.alternatives[0].proposal.changes == ()
    (free,) = plan(crowded(), PlanRequest(alternatives=1)).alternatives
    assert (free.balance.replicas.min, free.balance.replicas.max) == (11, 11)


def test_the_fewest_are_raised_where_the_most_cannot_be_lowered() -> None:
    held = (14, 12, 11, 10, 10, 9)
    made = plan(crowded(held), PlanRequest(keep_partitions=KEPT, alternatives=1))
    (first,) = made.alternatives
    assert (first.balance.replicas.min, first.balance.replicas.max) == (10, 14)
    assert first.proposal.moved_replicas == 1


@pytest.mark.parametrize(
    ("now", "ordered"),
    [
        ((2, 1, 3), (1, 2, 3)),
        ((2, 4, 1), (1, 2, 4)),
        ((4, 3, 2), (4, 3, 2)),
        ((3, 1), (3, 1)),
    ],
)
def test_replicas_that_stay_keep_their_places_beside_their_leader(
    now: tuple[int, ...], ordered: tuple[int, ...]
) -> None:
    assert in_order((1, 2, 3), now) == ordered


def test_followers_keep_their_order_under_another_leader() -> None:
    assert followers_in_order((1, 2, 3), (3, 2, 1)) == (3, 1, 2)
    assert followers_in_order((1, 2, 3), (3, 4, 1)) == (3, 4, 1)
