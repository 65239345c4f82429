"""Times as people write them."""

import pytest

from control.views.times import TimeError, parse_moment, span_of

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("words", "at_ms"),
    [
        ("30s", NOW_MS - 30_000),
        ("2h", NOW_MS - 7_200_000),
        ("-10m", NOW_MS - 600_000),
        ("1799999999999", NOW_MS - 1),
        ("2027-01-15T08:00:00+00:00", NOW_MS),
        ("2027-01-15T08:00:00Z", NOW_MS),
    ],
)
def test_moments(words: str, at_ms: int) -> None:
    assert parse_moment(words, now_ms=NOW_MS) == at_ms


@pytest.mark.parametrize(
    "words",
    ["", "yesterday", "12", "10x", "9" * 20, "9999-12-31T23:00", "0001-01-01", "9" * 12 + "d"],
)
def test_what_is_no_time_says_what_would_be(words: str) -> None:
    with pytest.raises(TimeError, match="2026-11-21T09:00"):
        parse_moment(words, now_ms=NOW_MS)


def test_charts_end_now_or_at_the_wanted_time() -> None:
    assert span_of("", "", now_ms=NOW_MS).since_ms == NOW_MS - 600_000
    past = span_of("2h", "1h", now_ms=NOW_MS)
    assert (past.since_ms, past.until_ms) == (NOW_MS - 10_800_000, NOW_MS - 7_200_000)
    with pytest.raises(TimeError, match="range"):
        span_of("", "long", now_ms=NOW_MS)
