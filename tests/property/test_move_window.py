"""Windows of moves by the clock on the wall: over midnight, and where clocks are set."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control.move.window import MoveWindow
from tests.support.cases import case

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")
"""With half an hour of daylight saving, and a day that was left out (30 December 2011)."""
SET = (
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),
)
"""Moments at which one of these clocks is set."""
MINUTE_MS = 60_000

day_times = st.times(max_value=time(23, 59)).map(lambda at: at.replace(second=0, microsecond=0))
windows = st.tuples(day_times, day_times).filter(lambda it: it[0] != it[1])
moments = st.builds(
    lambda at, minutes: int(at.timestamp()) * 1000 + minutes * MINUTE_MS,
    st.sampled_from(SET),
    st.integers(-3000, 3000),
)


def shown(at_ms: float, zone: str) -> str:
    """The clock on a wall there."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(zone)).strftime("%H:%M")


def is_within(clock: str, start: time, until: time) -> bool:
    """By the texts alone."""
    begins, ends = f"{start:%H:%M}", f"{until:%H:%M}"
    return begins <= clock < ends if begins < ends else not ends <= clock < begins


@settings(max_examples=150)
@given(windows, moments, st.sampled_from(ZONES))
def test_a_window_is_open_when_the_clock_on_the_wall_says_so(
    hours: tuple[time, time], at_ms: int, zone: str
) -> None:
    window = MoveWindow(start=hours[0], until=hours[1], zone=ZoneInfo(zone))
    assert window.is_open(at_ms) == is_within(shown(at_ms, zone), *hours)
    changes_ms = window.changes_ms(at_ms)
    minutes = range(at_ms + MINUTE_MS, at_ms + 4 * 24 * 60 * MINUTE_MS, MINUTE_MS)
    other = not window.is_open(at_ms)
    assert changes_ms == next(m for m in minutes if is_within(shown(m, zone), *hours) == other)
    assert window.opens_ms(at_ms) == (changes_ms if other else at_ms)


@settings(max_examples=60)
@given(windows, moments, st.sampled_from(ZONES), st.integers(0, 1500))
def test_work_is_done_once_the_window_was_open_for_so_long(
    hours: tuple[time, time], at_ms: int, zone: str, minutes: int
) -> None:
    window = MoveWindow(start=hours[0], until=hours[1], zone=ZoneInfo(zone))
    done_ms = window.done_ms(at_ms, minutes * 60)
    if done_ms is None:
        return  # a window of minutes: it would take more than a year
    until = min(int(done_ms), at_ms + 30 * 24 * 60 * MINUTE_MS)
    opened = sum(is_within(shown(m, zone), *hours) for m in range(at_ms, until, MINUTE_MS))
    assert opened == minutes or until < done_ms


def test_what_a_clock_leaves_out_is_not_open_and_what_comes_twice_is_open_twice() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    def opened_minutes(day: datetime, start: time, until: time) -> int:
        window = MoveWindow(start=start, until=until, zone=berlin)
        first = int(day.replace(tzinfo=berlin).timestamp())
        ends = int((day + timedelta(days=1)).replace(tzinfo=berlin).timestamp())
        return sum(window.is_open(at * 1000) for at in range(first, ends, 60))

    spring, autumn = datetime(2026, 3, 29), datetime(2026, 10, 25)  # noqa: DTZ001
    for day, hours, minutes in (
        (spring, (time(2, 15), time(2, 45)), 0),
        (spring, (time(1), time(5)), 180),
        (spring, (time(2, 30), time(3, 30)), 30),
        (autumn, (time(2, 15), time(2, 45)), 60),
        (autumn, (time(1), time(5)), 300),
    ):
        with case(day, hours):
            assert opened_minutes(day, *hours) == minutes


@pytest.mark.parametrize(
    "document",
    [
        {"start": "01:00", "until": "01:00", "zone": "UTC"},
        {"start": "01:00", "until": "24:00", "zone": "UTC"},
        {"start": "01:00", "zone": "UTC"},
        {"start": "01:00", "until": "05:00", "zone": "Europe/Nowhere"},
        {"start": "01:00", "until": "05:00", "zone": "../../etc/passwd"},
        {"start": "01:00", "until": "05:00"},
    ],
)
def test_what_is_no_window_is_refused(document: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"window|zone"):
        MoveWindow.parse(document)


def test_a_window_travels_unchanged() -> None:
    window = MoveWindow(start=time(22, 30), until=time(0), zone=ZoneInfo("Asia/Kolkata"))
    assert MoveWindow.parse(window.document()) == window
    assert window.words == "22:30 to 00:00 (Asia/Kolkata)"
