"""Replicas of new topics, on random clusters."""

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from planner.new_topic import placed
from planner.racks import Racks

RACKS = st.dictionaries(
    st.integers(0, 9), st.sampled_from(("a", "b", "c", None)), min_size=1, max_size=9
)


@given(of=RACKS, partitions=st.integers(1, 40), data=st.data())
def test_replicas_are_on_as_many_racks_and_as_even_as_can_be(
    of: dict[int, str | None], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(of)))
    held = {broker: data.draw(st.integers(0, 99)) for broker in of}
    racks = Racks(of=of)
    found = placed(held, racks, partitions=partitions, factor=factor)
    assert len(found) == partitions
    best = max(racks.number(chosen) for chosen in combinations(of, factor))
    for replicas in found:
        assert len(set(replicas)) == factor
        assert racks.number(replicas) == best
    if len(set(of.values())) == 1:
        replicas_of = Counter(broker for replicas in found for broker in replicas)
        numbers = [replicas_of[broker] for broker in of]
        assert max(numbers) - min(numbers) <= 1


def test_a_topic_begins_on_the_brokers_with_fewest_replicas() -> None:
    found = placed({1: 10, 2: 0, 3: 5}, Racks(of={}), partitions=3, factor=2)
    assert found == ((2, 3), (1, 2), (3, 1))


def test_many_take_over_from_a_broker_that_fails() -> None:
    """Whoever leads is followed by each of the others in turn."""
    found = placed(dict.fromkeys(range(4), 0), Racks(of={}), partitions=12, factor=2)
    assert Counter(leader for leader, _ in found) == dict.fromkeys(range(4), 3)
    assert set(map(frozenset, found)) == set(map(frozenset, combinations(range(4), 2)))
