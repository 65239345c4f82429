import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.errors import InvalidReplicationFactorError
from broker.controller.placement import UsableBroker, place_replicas


def brokers(racks: list[str | None], fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [
        UsableBroker(id=index, rack=rack, is_active=index not in fenced)
        for index, rack in enumerate(racks)
    ]


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9),
    st.integers(1, 40),
    st.integers(1, 4),
    st.integers(0, 1000),
)
def test_placement_is_legal_spread_and_even(
    racks: list[str], partitions: int, factor: int, seed: int
) -> None:
    usable = brokers(list(racks))
    if factor > len(usable):
        with pytest.raises(InvalidReplicationFactorError, match="only"):
            place_replicas(
                usable, partitions=partitions, replication_factor=factor, dice=random.Random(seed)
            )
        return
    placed = place_replicas(
        usable, partitions=partitions, replication_factor=factor, dice=random.Random(seed)
    )
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({racks[r] for r in replicas}) == min(factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in placed)
    counts = [leaders[broker.id] for broker in usable]
    assert max(counts) - min(counts) <= 1


def test_replicas_are_even_without_racks() -> None:
    placed = place_replicas(
        brokers([None] * 5), partitions=50, replication_factor=3, dice=random.Random(1)
    )
    counts = Counter(replica for replicas in placed for replica in replicas)
    assert max(counts.values()) - min(counts.values()) <= 2


def test_followers_of_a_leader_vary_so_that_its_load_spreads_when_it_dies() -> None:
    for factor in (2, 3, 4):
        assert_followers_vary(factor)


def assert_followers_vary(factor: int) -> None:
    placed = place_replicas(
        brokers([None] * 4), partitions=24, replication_factor=factor, dice=random.Random(1)
    )
    for leader in range(4):
        seconds = Counter(replicas[1] for replicas in placed if replicas[0] == leader)
        assert len(seconds) == 3
        assert max(seconds.values()) - min(seconds.values()) <= 1


def test_three_partitions_land_on_three_brokers_whatever_the_dice() -> None:
    for seed in range(20):
        placed = place_replicas(
            brokers([None] * 3), partitions=3, replication_factor=1, dice=random.Random(seed)
        )
        assert {replicas[0] for replicas in placed} == {0, 1, 2}


def test_single_partition_topics_start_at_different_brokers() -> None:
    dice = random.Random(1)
    firsts = {
        place_replicas(brokers([None] * 3), partitions=1, replication_factor=1, dice=dice)[0]
        for _ in range(30)
    }
    assert len(firsts) == 3


def test_fenced_brokers_never_lead_and_only_fill_up() -> None:
    usable = brokers([None] * 4, fenced=(3,))
    placed = place_replicas(usable, partitions=8, replication_factor=3, dice=random.Random(1))
    assert all(3 not in replicas for replicas in placed)
    placed = place_replicas(usable, partitions=8, replication_factor=4, dice=random.Random(1))
    assert all(replicas[-1] == 3 for replicas in placed)


@pytest.mark.parametrize(
    ("fenced", "factor", "words"),
    [((), 0, "positive"), ((0, 1), 1, "fenced"), ((), 3, "only 2")],
)
def test_impossible_factors_are_refused(fenced: tuple[int, ...], factor: int, words: str) -> None:
    with pytest.raises(InvalidReplicationFactorError, match=words):
        place_replicas(
            brokers([None] * 2, fenced),
            partitions=1,
            replication_factor=factor,
            dice=random.Random(1),
        )


class InOrder:
    """Dice that leave the order as it is."""

    def randrange(self, stop: int, /) -> int:
        return stop - 1


def test_worked_examples_of_the_module() -> None:
    plain = place_replicas(brokers([None] * 3), partitions=4, replication_factor=2, dice=InOrder())
    assert plain == [(0, 1), (2, 0), (1, 2), (0, 2)]
    racks = place_replicas(
        brokers(["a", "a", "b", "b"]), partitions=4, replication_factor=2, dice=InOrder()
    )
    assert racks == [(0, 2), (1, 3), (2, 0), (3, 1)]
