"""Times as people write them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from control.views.times import TimeError, parse_moment, span_of

NOW_MS = 1_800_000_000_000


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("seconds_ago", [0, 1, 59, 3_600, 40_000, 86_399])
def test_a_time_of_day_is_the_last_one_that_was(seconds_ago: int) -> None:
    wanted_s = NOW_MS // 1000 - seconds_ago
    clock = time.strftime("%H:%M:%S", time.localtime(wanted_s))
    assert parse_moment(clock, now_ms=NOW_MS) == wanted_s * 1000
    assert parse_moment(f"@ {clock}", now_ms=NOW_MS) == wanted_s * 1000
    minute = wanted_s - wanted_s % 60
    assert parse_moment(clock[:5], now_ms=NOW_MS) in (minute * 1000, (minute + 86_400) * 1000)
    iso = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wanted_s))
    assert parse_moment(iso, now_ms=NOW_MS) == wanted_s * 1000


@pytest.mark.parametrize(
    ("words", "at_ms"),
    [
        ("now", NOW_MS),
        ("1.5h", NOW_MS - 5_400_000),
        ("10m ago", NOW_MS - 600_000),
        ("1799999999", NOW_MS - 1_000),
        ("08:00Z", NOW_MS),
        ("07:59:59+00:00", NOW_MS - 1_000),
        ("9:05+05:30", NOW_MS - (4 * 60 + 25) * 60_000),
        ("2027-01-15", None),
        ("30s", NOW_MS - 30_000),
        ("2h", NOW_MS - 7_200_000),
        ("-10m", NOW_MS - 600_000),
        ("1799999999999", NOW_MS - 1),
        ("2027-01-15T08:00:00+00:00", NOW_MS),
        ("2027-01-15T08:00:00Z", NOW_MS),
    ],
)
def test_moments(words: str, at_ms: int | None) -> None:
    found = parse_moment(words, now_ms=NOW_MS)
    assert found == at_ms or (at_ms is None and abs(found - NOW_MS) < 86_400_000)


def test_a_time_keeps_its_milliseconds() -> None:
    for at_ms in (2_196_448_430_845, *range(1_799_999_999_000, 1_800_000_001_000)):
        moment = datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)
        assert parse_moment(moment.isoformat(), now_ms=NOW_MS) == at_ms


@pytest.mark.parametrize(
    "words",
    [
        "",
        "yesterday",
        "12",
        "10x",
        "25:00",
        "18:60",
        "-18:05",
        "9" * 20,
        "9999-12-31T23:00",
        "0001-01-01",
        "9" * 12 + "d",
    ],
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
