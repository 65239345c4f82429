"""The table of clocks: whoever's is off, figures go on, nothing is over before its time."""

from typing import Final

import pytest

from spark_metrics.state.source_clocks import DELIVERY_MS_MAX, SENDING_MS, TOLERATED_MS
from tests.support.off_clocks import (
    BEHIND,
    BROKERS,
    HOUR_MS,
    RATE,
    RIGHT,
    TABLE,
    WHILE,
    WHOSE,
    OffClock,
    Second,
    live_through,
)

SMALL_LATE: Final = 5
"""Rounds until a clock is known to be off that is only a little behind."""
LATE_MS: Final = 2_500
TOLD_BEHIND_MS: Final = TOLERATED_MS + 1_000 + SENDING_MS
"""Nobody can tell a clock that is less behind, by rounds each second, from late delivery."""
FOLDED: Final = [
    OffClock(whose=whose, by_ms=by_ms, rounds=WHILE)
    for whose, by_ms in (("leader", -1_900), ("all brokers", 2 * HOUR_MS), ("job", 2 * HOUR_MS))
]


def late_rounds(case: OffClock) -> int:
    """How many rounds figures may be late: one that is far off is known with its next round."""
    if case.whose == "job":
        return 0
    return 0 if abs(case.by_ms) > DELIVERY_MS_MAX else SMALL_LATE


def check(case: OffClock, now: Second) -> None:
    """Nothing freezes, and nothing is ahead of its time."""
    late, told = late_rounds(case), f"second {now.second}: {now}"
    assert now.watermark_ms <= now.at_ms + LATE_MS, f"ahead of most sources: {told}"
    if now.second < 4:
        return
    assert now.at_ms - now.watermark_ms <= 1_000 * late + LATE_MS, told
    assert max(now.disks.values()) <= late, told
    for complete_ms in now.complete_ms.values():
        assert abs(complete_ms - now.at_ms) <= 1_000 * late + LATE_MS, told
    if now.end is None:
        return
    assert now.end >= 1_000 + RATE * (now.second - late), told
    assert now.committed is not None
    assert now.committed >= 1_000 + RATE * (now.second - late - 2) - BEHIND, told
    assert all(abs(it - now.at_ms) <= 1_000 * late + LATE_MS for it in now.points_ms), told


def check_named(case: OffClock, now: Second) -> None:
    """It is known whose clock is off, and by how much."""
    is_told = case.by_ms > TOLERATED_MS or case.by_ms < -TOLD_BEHIND_MS
    off = WHOSE.get(case.whose, BROKERS)
    for broker, skew_ms in now.skews_ms.items():
        wanted = case.by_ms if is_told and broker in off else 0
        assert skew_ms == pytest.approx(wanted, abs=1_000), str(now)
    assert now.job_skew_ms == (case.by_ms if case.whose in ("job", "one machine") else 0)


def live(case: OffClock, *, folds: bool) -> None:
    """Go through a line of the table."""
    watermark_ms, last = 0, None
    for now in live_through(case, folds=folds):
        check(case, now)
        assert now.watermark_ms >= watermark_ms
        watermark_ms, last = now.watermark_ms, now
        if now.second == RIGHT + WHILE - 1 and case.rounds != 1:
            check_named(case, now)
    assert last is not None
    if case.rounds is not None:
        assert set(last.skews_ms.values()) == {0}
        assert last.job_skew_ms == 0


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_no_round_is_lost_and_the_clock_is_named(case: OffClock) -> None:
    live(case, folds=False)


@pytest.mark.parametrize("case", FOLDED, ids=str)
def test_figures_go_on_with_the_next_round(case: OffClock) -> None:
    live(case, folds=True)
