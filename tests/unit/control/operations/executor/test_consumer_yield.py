"""When a move yields to groups that fall behind, reading by reading."""

from control.move.yields import YieldRules
from control.operations.executor.yielding.consumer_yield import (
    ConsumerYield,
    GroupReading,
    YieldChange,
)

RULES = YieldRules(behind_s=30.0, at_most_s=120.0)


def reading(lag: int, time_lag_s: float) -> GroupReading:
    return GroupReading(
        lag=lag,
        is_late=time_lag_s > RULES.behind_s,
        is_caught_up=time_lag_s <= RULES.behind_s / 2,
    )


def behind() -> tuple[ConsumerYield, float]:
    """A move that yields to a, and when it began to."""
    fold = ConsumerYield(RULES)
    fold.observe({"a": reading(0, 0)}, 0.0)
    for number, at_s in enumerate((5.0, 10.0, 15.0, 20.0, 25.0)):
        assert fold.observe({"a": reading(100 * number, 20)}, at_s) == ()
    assert fold.observe({"a": reading(600, 31)}, 30.0) == ()
    assert fold.observe({"a": reading(700, 36)}, 35.0) == ((YieldChange.BEGINS, ("a",)),)
    return fold, 35.0


def test_it_yields_once_records_are_too_old_and_lag_grows_and_goes_on_when_caught_up() -> None:
    fold, at_s = behind()
    assert fold.observe({"a": reading(500, 20)}, at_s + 5) == ()
    assert fold.observe({"a": reading(300, 14)}, at_s + 10) == ()
    assert fold.observe({"a": reading(100, 5)}, at_s + 15) == ((YieldChange.ENDS, ("a",)),)
    assert fold.behind == ()


def test_old_records_of_lag_that_falls_hold_nothing() -> None:
    fold = ConsumerYield(RULES)
    fold.observe({"a": reading(0, 0)}, 0.0)
    for number in range(20):
        assert fold.observe({"a": reading(2000 - number, 40)}, 30.0 + 5 * number) == ()


def test_lag_that_falls_with_each_commit_grows_where_its_least_does() -> None:
    fold = ConsumerYield(RULES)
    fold.observe({"a": reading(0, 0)}, 0.0)
    changes: list[tuple[YieldChange, tuple[str, ...]]] = []
    for number in range(8):
        lag = 50 * number + (200 if number % 2 else 0)
        changes += fold.observe({"a": reading(lag, 40)}, 5.0 * (number + 1))
    assert changes == [(YieldChange.BEGINS, ("a",))]


def test_a_group_whose_members_have_left_holds_nothing() -> None:
    fold, at_s = behind()
    assert fold.observe({}, at_s + 5) == ((YieldChange.ENDS, ("a",)),)


def test_after_its_longest_time_it_goes_on_also_where_the_cluster_is_silent() -> None:
    fold, at_s = behind()
    assert fold.observe(None, at_s + 119) == ()
    assert fold.observe(None, at_s + 120) == ((YieldChange.GIVES_UP, ("a",)),)
    for number in range(10):
        late = {"a": reading(1000 + 100 * number, 300)}
        assert fold.observe(late, at_s + 125 + 5 * number) == ()


def test_after_a_crash_it_yields_still_before_the_first_reading_and_says_nothing_anew() -> None:
    fold = ConsumerYield(RULES, held_by=("a",))
    assert fold.behind == ("a",)
    assert fold.observe(None, 0.0) == ()
    assert fold.observe({"a": reading(700, 60)}, 5.0) == ()
    assert fold.behind == ("a",)
    assert fold.observe({"a": reading(0, 0)}, 10.0) == ()
    assert fold.observe({"a": reading(0, 0)}, 15.0) == ((YieldChange.ENDS, ("a",)),)
    gone = ConsumerYield(RULES, held_by=("a",))
    assert gone.observe({}, 0.0) == ((YieldChange.ENDS, ("a",)),)
    assert gone.behind == ()
