"""Rates and intervals."""

import pytest

from control.operations.executor.timing.eta import DOUBT_MIN, ENDING_S, RateWindow


def window(*samples: tuple[float, int]) -> RateWindow:
    filled = RateWindow()
    for at_s, done in samples:
        filled.add(at_s, done)
    return filled


def test_an_even_rate_gives_a_narrow_interval() -> None:
    steady = window(*((float(s), s * 100) for s in range(10)))
    assert steady.rate_bytes_per_s() == 100.0
    interval = steady.eta_s(1100)
    assert interval is not None
    low, high = interval
    assert low == pytest.approx(1100 / (100 * (1 + DOUBT_MIN)) + ENDING_S[0])
    assert high == pytest.approx(1100 / (100 * (1 - DOUBT_MIN)) + ENDING_S[1])


def test_a_bumpy_rate_gives_a_wide_one_around_the_mean() -> None:
    bumpy = window((0, 0), (1, 300), (2, 300), (3, 600), (4, 600), (5, 900))
    interval = bumpy.eta_s(1500)
    assert interval is not None
    low, high = interval
    assert low < 1500 / 150 < high
    assert high / low > 1.5


def test_nothing_is_said_too_early_or_when_nothing_moves() -> None:
    assert window((0, 0)).rate_bytes_per_s() is None
    assert window((0, 0), (1, 5)).eta_s(10) is None
    assert window((0, 5), (1, 5), (2, 5)).eta_s(10) is None
    assert window().eta_s(0) == ENDING_S


def test_the_time_before_the_first_byte_slows_nothing_down() -> None:
    late = window((0, 0), (1, 0), (2, 0), (3, 0), (4, 10), (5, 110), (6, 210))
    assert late.rate_bytes_per_s() == 100.0


def test_what_a_throttle_lets_through_at_once_is_no_rate() -> None:
    burst = window((0, 0), (1, 5000), (2, 5100), (3, 5200))
    assert burst.rate_bytes_per_s() == 100.0


def test_a_pause_in_the_middle_counts() -> None:
    halting = window((0, 0), (1, 100), (2, 200), (3, 200), (4, 200), (5, 300))
    assert halting.rate_bytes_per_s() == 50.0


def test_bytes_never_run_backwards() -> None:
    assert window((0, 0), (1, 100), (2, 50), (3, 100)).rate_bytes_per_s() == 0.0
