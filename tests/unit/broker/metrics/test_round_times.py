"""Rounds of samples: written just before the batch that reads them, and evenly."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.metrics.round_times import MARGIN_MS, RoundTimes

INTERVALS_MS = st.sampled_from([100, 1_000, 1_500, 5_000, 10_000])


def _begins(interval_ms: int, begun_ms: int, took: list[int]) -> list[tuple[int, int]]:
    """When rounds begin and end that take so long, the first at any moment."""
    times, found = RoundTimes(), []
    for took_ms in took:
        now_ms = begun_ms + took_ms
        found.append((begun_ms, now_ms))
        begun_ms = now_ms + times.wait_ms(now_ms=now_ms, took_ms=took_ms, interval_ms=interval_ms)
    return found


@given(interval_ms=INTERVALS_MS, begun_ms=st.integers(0, 10**13))
def test_rounds_end_a_margin_before_whole_intervals(interval_ms: int, begun_ms: int) -> None:
    rounds = _begins(interval_ms, begun_ms, [20] * 5)
    assert {(end + MARGIN_MS) % interval_ms for _, end in rounds[1:]} == {0}


@given(
    interval_ms=INTERVALS_MS,
    begun_ms=st.integers(0, 10**13),
    shares=st.lists(st.floats(0.0, 0.9), min_size=2, max_size=30),
)
def test_the_next_round_is_the_first_that_is_half_an_interval_later(
    interval_ms: int, begun_ms: int, shares: list[float]
) -> None:
    took = [int(share * interval_ms) for share in shares]
    begins = [begun for begun, _ in _begins(interval_ms, begun_ms, took)]
    for (before, after), took_ms in zip(pairwise(begins), took, strict=False):
        soonest_ms = max(took_ms, interval_ms // 2)
        assert soonest_ms <= after - before < soonest_ms + interval_ms


@given(interval_ms=INTERVALS_MS, took=st.integers(0, 50_000), now_ms=st.integers(-(10**6), 10**13))
def test_a_round_that_takes_longer_than_its_interval_is_followed_by_another(
    interval_ms: int, took: int, now_ms: int
) -> None:
    wait_ms = RoundTimes().wait_ms(now_ms=now_ms, took_ms=took, interval_ms=interval_ms)
    assert 0 <= wait_ms < 1.5 * interval_ms
