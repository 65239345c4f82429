"""The job's own time: whom it believes at a start, and how far the watermark may go."""

from dataclasses import replace

import pytest

from spark_metrics.state.job_clock import CATCHES_UP, JobClock, Tick
from spark_metrics.state.job_state import JobState
from spark_metrics.state.rounds import SourceKey
from spark_metrics.state.source_clocks import SEEN_MIN, Seen, SourceClock, compare_clocks

T0_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
DELAY_MS = 200


def tick(at_ms: int, *, wall_off_ms: int = 0, boot: str = "a") -> Tick:
    return Tick(wall_ms=T0_MS + at_ms + wall_off_ms, boot=boot, steady_ms=at_ms)


def live(
    clock: JobClock, sources_off_ms: list[int], *, batches: int, wall_off_ms: int = 0
) -> tuple[JobClock, dict[SourceKey, SourceClock]]:
    """A second a batch; each source's clock is off by so much."""
    clocks: dict[SourceKey, SourceClock] = {}
    reached_ms: int | None = None
    for _ in range(batches):
        clock = clock.at(tick(clock.tick.steady_ms + 1_000, wall_off_ms=wall_off_ms))
        true_ms = T0_MS + clock.tick.steady_ms
        found = {
            SourceKey("c", number): Seen(first_ms=sent_ms, sent_ms=sent_ms)
            for number, off_ms in enumerate(sources_off_ms)
            for sent_ms in (true_ms - DELAY_MS + off_ms,)
        }
        clock, clocks = compare_clocks(clock, clocks, found, reached_ms=reached_ms)
        reached_ms = clock.now_ms
    return clock, clocks


@pytest.mark.parametrize("off_ms", [2 * HOUR_MS, 8 * DAY_MS, 400 * DAY_MS])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_job_that_begins_by_a_wrong_clock_believes_most_sources(off_ms: int, sign: int) -> None:
    begun = JobClock.begun(tick(0, wall_off_ms=sign * off_ms))
    clock, clocks = live(begun, [0, 0, 45_000], batches=SEEN_MIN + 3, wall_off_ms=sign * off_ms)
    assert clock.now_ms == pytest.approx(T0_MS + clock.tick.steady_ms, abs=1_000)
    assert clock.skew_ms == pytest.approx(sign * off_ms, abs=1_000)
    assert [it.skew_ms for it in clocks.values()] == [0, 0, pytest.approx(45_000, abs=1_000)]


def test_between_one_source_and_the_job_the_job_is_right_within_a_day() -> None:
    begun = JobClock.begun(tick(0))
    clock, clocks = live(begun, [2 * HOUR_MS], batches=SEEN_MIN + 3)
    assert clock.now_ms == T0_MS + clock.tick.steady_ms
    assert clocks[SourceKey("c", 0)].skew_ms == pytest.approx(2 * HOUR_MS, abs=1_000)
    clock, clocks = live(begun, [-30 * DAY_MS], batches=SEEN_MIN + 3)
    assert clocks[SourceKey("c", 0)].skew_ms == 0, "a topic that was written long ago"
    assert clock.now_ms == pytest.approx(T0_MS + clock.tick.steady_ms - 30 * DAY_MS, abs=1_000)


def test_a_settled_clock_counts_by_the_steady_one() -> None:
    clock = replace(JobClock.begun(tick(0)), is_settled=True)
    later = clock.at(tick(5_000, wall_off_ms=8 * DAY_MS))
    assert (later.now_ms, later.skew_ms, later.is_settled) == (T0_MS + 5_000, 8 * DAY_MS, True)
    booted = clock.at(replace(tick(9_000, boot="b"), steady_ms=1))
    assert (booted.now_ms, booted.is_settled) == (T0_MS + 9_000, False)
    assert clock.at(tick(0, wall_off_ms=-DAY_MS, boot="b")).now_ms == T0_MS, "never back"


def test_what_was_measured_before_a_boot_proves_nothing_after_it() -> None:
    key = SourceKey("c", 0)
    clocks = {key: SourceClock(cluster="c", broker=0, skew_ms=45_000, least=(1,), most=(2,))}
    for is_settled in (True, False):
        clock = replace(JobClock.begun(tick(0)), is_settled=is_settled)
        before = JobState(clock=clock, clocks=clocks, reached_ms=T0_MS)
        same, booted = before.begun(tick(1_000)), before.begun(tick(1_000, boot="b"))
        assert (same.clocks, same.reached_ms) == (clocks, T0_MS)
        assert (booted.clocks[key].most, booted.reached_ms) == ((), None)
        assert booted.clocks[key].skew_ms == 45_000


def test_the_watermark_goes_by_most_sources_and_never_back() -> None:
    clock = JobClock.begun(tick(0)).with_watermark([T0_MS, T0_MS + 1, T0_MS + 400 * DAY_MS])
    assert clock.watermark_ms == T0_MS + 1
    assert clock.with_watermark([T0_MS - DAY_MS] * 3).watermark_ms == T0_MS + 1
    assert JobClock.begun(tick(0)).with_watermark([]).watermark_ms == 0


def test_the_watermark_is_no_faster_than_a_steady_clock() -> None:
    clock = JobClock.begun(tick(0)).with_watermark([T0_MS] * 3)
    ahead = [T0_MS + 8 * DAY_MS] * 3
    for second in range(1, 60):
        clock = clock.at(tick(1_000 * second)).with_watermark(ahead)
    assert clock.watermark_ms <= T0_MS + 59_000
    paused = clock.at(tick(10 * DAY_MS, boot="b")).with_watermark([T0_MS + 10 * DAY_MS] * 3)
    assert paused.watermark_ms == T0_MS + 10 * DAY_MS, "the job stood still for ten days"
    booted = clock.at(replace(tick(1, boot="b"), wall_ms=0)).with_watermark([T0_MS + HOUR_MS] * 3)
    assert booted.watermark_ms == clock.watermark_ms, "a host without a clock knows no pause"
    behind = replace(booted, now_ms=T0_MS + HOUR_MS, is_settled=True)
    steady_ms = behind.tick.steady_ms + CATCHES_UP * HOUR_MS
    later = behind.at(Tick(wall_ms=0, boot="b", steady_ms=steady_ms))
    assert later.ceiling_ms == later.now_ms, "what was held back is made good"
