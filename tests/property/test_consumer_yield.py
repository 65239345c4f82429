"""A move that yields to consumers: never flaps, never waits for ever, never waits in vain."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from control.move.yields import YieldRules
from control.operations.executor.yielding.consumer_yield import (
    READINGS,
    ConsumerYield,
    GroupReading,
    YieldChange,
)

RULES = YieldRules(behind_s=30.0, at_most_s=120.0)
GROUPS = ("a", "b")
Round = tuple[float, Mapping[str, GroupReading] | None]


READINGS_OF_A_GROUP: st.SearchStrategy[GroupReading] = st.builds(
    lambda lag, age: GroupReading(lag=lag, is_late=age == 2, is_caught_up=age == 0),
    st.integers(0, 20),
    st.integers(0, 2),
)
"""The age is that of the oldest unread record: young, between the limits, too old."""


def stories() -> st.SearchStrategy[Sequence[Round]]:
    """Readings a few seconds apart; a group without members is absent, a silent cluster is None."""
    shown = st.dictionaries(st.sampled_from(GROUPS), READINGS_OF_A_GROUP)
    rounds = st.lists(st.tuples(st.integers(1, 40), st.none() | shown), min_size=1, max_size=30)
    return rounds.map(_at_times)


def _at_times(rounds: Sequence[tuple[int, Mapping[str, GroupReading] | None]]) -> Sequence[Round]:
    times = accumulate(pause_s for pause_s, _ in rounds)
    return [(float(at_s), groups) for at_s, (_, groups) in zip(times, rounds, strict=True)]


@given(stories())
def test_yields_begin_and_end_by_turns_and_last_no_longer_than_allowed(
    story: Sequence[Round],
) -> None:
    fold, since_s = ConsumerYield(RULES), None
    for at_s, groups in story:
        for change, names in fold.observe(groups, at_s):
            assert names
            if change is YieldChange.BEGINS:
                assert since_s is None
                since_s = at_s
            elif change is not YieldChange.EXCUSED:
                assert since_s is not None
                since_s = None
        assert bool(fold.behind) == (since_s is not None)
        assert since_s is None or at_s - since_s < RULES.at_most_s


@given(stories())
def test_between_two_yields_to_a_group_it_has_caught_up_or_was_away(
    story: Sequence[Round],
) -> None:
    """No flapping: at the edge of either limit nothing changes."""
    fold, held, well, was_away = ConsumerYield(RULES), dict[str, bool](), dict[str, int](), set()
    for at_s, groups in story:
        for name in GROUPS:
            if groups is not None and name not in groups:
                was_away.add(name)
            elif groups is not None:
                well[name] = well.get(name, 0) + 1 if groups[name].is_caught_up else 0
        before = fold.behind
        fold.observe(groups, at_s)
        for name in fold.behind:
            if name not in before:
                assert held.get(name, True), f"{name} holds again without having caught up"
                held[name] = False
        for name in GROUPS:
            if well.get(name, 0) >= READINGS or name in was_away:
                held[name] = True


@given(stories())
def test_a_group_that_was_behind_before_holds_nothing_until_it_has_caught_up(
    story: Sequence[Round],
) -> None:
    late = GroupReading(lag=5, is_late=True, is_caught_up=False)
    fold, well = ConsumerYield(RULES), 0
    assert fold.observe({"a": late}, 0.0) == ((YieldChange.EXCUSED, ("a",)),)
    for at_s, groups in story:
        fold.observe(groups, at_s)
        if groups is not None and "a" in groups:
            well = well + 1 if groups["a"].is_caught_up else 0
        if well >= READINGS:
            return
        assert "a" not in fold.behind


@given(stories(), st.integers(0, 39))
def test_an_operator_can_always_let_it_go_on(story: Sequence[Round], at: int) -> None:
    fold = ConsumerYield(RULES)
    for at_s, groups in story[:at]:
        fold.observe(groups, at_s)
    held = fold.behind
    assert fold.go_on() == held
    assert fold.behind == ()
