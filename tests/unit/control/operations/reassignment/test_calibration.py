"""Intervals hold as often as they say, once some moves have ended, whatever the cluster is like."""

from random import Random

import pytest

from control.move.results import Misses
from control.operations.executor.timing.eta import ENDING_S
from control.operations.executor.timing.forecast import LEFT_KEPT, Finishing, Forecast
from control.operations.reassignment.calibration import (
    MOVES_MAX,
    Calibration,
    calibration_of,
    miss_of,
    stretched,
)


def ended(miss: float, *, is_adaptive: bool = False) -> Misses:
    return Misses(foreseen=miss, left=(miss,), is_adaptive=is_adaptive)


def test_the_example() -> None:
    assert miss_of((10.0, 14.0), 11.0) == -0.5
    assert stretched((20.0, 28.0), (-0.75, 0.0)) == (21.0, 24.0)
    assert stretched((1.0, 3.0), (-4.0, -3.0)) == (0.0, 0.0)


def test_without_history_intervals_stay_as_they_are() -> None:
    made = calibration_of([], is_adaptive=False)
    assert made.foreseen == made.left == pytest.approx((-1.0, 1.0))


@pytest.mark.parametrize(("middle", "spread"), [(-0.5, 0.1), (0.3, 1.0), (0.0, 3.0)])
def test_eight_in_ten_hold_wherever_truths_lie(middle: float, spread: float) -> None:
    dice = Random(7)
    past: list[Misses] = []
    foreseen, left = [], []
    for _ in range(200):
        learned = calibration_of(past, is_adaptive=False)
        of_one = dice.gauss(middle, spread)
        told = [of_one + dice.gauss(0, spread / 2) for _ in range(5)]
        foreseen.append(learned.foreseen[0] <= of_one <= learned.foreseen[1])
        left += [learned.left[0] <= miss <= learned.left[1] for miss in told]
        past.append(Misses(foreseen=of_one, left=tuple(told), is_adaptive=False))
    assert 0.72 < sum(foreseen) / len(foreseen) < 0.9
    assert 0.72 < sum(left) / len(left) < 0.9


def test_an_older_past_and_throttles_of_another_kind_do_not_count() -> None:
    newest = [ended(n / MOVES_MAX) for n in range(MOVES_MAX)]
    past = [ended(-50.0)] * 5 + [ended(90.0, is_adaptive=True)] * 5 + newest
    low, high = calibration_of(past, is_adaptive=False).foreseen
    assert 0.0 <= low < 0.1 < 0.8 < high < 1.0
    assert calibration_of(past, is_adaptive=True).foreseen[1] == 90.0


def test_a_larger_share_needs_more_room() -> None:
    past = [ended(n / 10) for n in range(-10, 11)]
    half = calibration_of(past, is_adaptive=False, share=0.5).left
    most = calibration_of(past, is_adaptive=False, share=0.95).left
    assert most[0] < half[0] < 0 < half[1] < most[1]


def test_a_move_tells_calibrated_intervals_and_leaves_behind_what_they_missed() -> None:
    to = Calibration(foreseen=(-0.5, 0.5), left=(0.0, 1.0))
    forecast = Forecast(calibration=to, is_adaptive=True)
    assert forecast.expect((8.0, 12.0), at_s=100.0) == (9.0, 11.0)
    told = [forecast.tell_left(100 * n, 1000, at_s=100.0 + n) for n in range(4)]
    made = forecast.rate.eta_s(700)
    assert made is not None
    assert told == [None, None, None, stretched(made, to.left)]
    found = forecast.misses(110.0)
    left = round(miss_of(made, 7.0), 3)
    assert found == Misses(foreseen=0.0, left=(left,), is_adaptive=True)
    assert Misses.parse(found.document()) == found


def test_what_was_told_of_another_course_does_not_count() -> None:
    forecast = Forecast()
    forecast.expect((1.0, 2.0), at_s=0.0)
    for second in range(5):
        forecast.tell_left(second, 100, at_s=second)
    forecast.begin_anew()
    assert forecast.rate.rate_bytes_per_s() is None
    assert forecast.misses(10.0) == Misses(foreseen=None, left=(), is_adaptive=False)


def test_where_partitions_take_longer_than_their_bytes_they_tell_the_time() -> None:
    forecast = Forecast()
    told = None
    for second in range(26):
        finishing = Finishing(done=120 * second, total=10_000, copying_s=10.0)
        told = forecast.tell_left(14_000 * second, 200 << 20, at_s=second, finishing=finishing)
    assert told is not None
    assert told[0] < 7000 / 120 + 10 + sum(ENDING_S) / 2 < told[1] < 90, "bytes alone: hours"


def test_where_bytes_take_the_time_partitions_change_nothing() -> None:
    plain, other = Forecast(), Forecast()
    for second in range(8):
        copying_s = (1000 - 50 * second) / 100
        finishing = Finishing(done=5 * second, total=100, copying_s=copying_s)
        few = Finishing(done=0, total=1, copying_s=copying_s)
        alone = plain.tell_left(50 * second, 1000, at_s=second, finishing=few)
        assert other.tell_left(50 * second, 1000, at_s=second, finishing=finishing) == alone


def test_with_a_throttle_it_may_end_sooner_as_what_arrives_last_passes_it_by() -> None:
    free, throttled = Forecast(), Forecast()
    for second in range(8):
        at_s, few = float(second), Finishing(done=0, total=1, copying_s=10.0)
        alone = free.tell_left(50 * second, 1000, at_s=at_s)
        told = throttled.tell_left(50 * second, 1000, at_s=at_s, finishing=few)
    assert alone is not None
    assert told is not None
    assert told[0] == pytest.approx(alone[0] - 2.0)
    assert told[1] == alone[1]


def test_of_a_long_move_a_few_are_kept_from_begin_to_end() -> None:
    forecast = Forecast()
    for second in range(10_000):
        forecast.tell_left(second, 10_000, at_s=second)
    left = forecast.misses(12_000).left
    assert len(left) == LEFT_KEPT
    assert list(left) == sorted(left)
    assert 10 < left[0] < 15
    assert left[-1] > 100
