"""Silences by globs and time, and maintenance windows by the clock of a place."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from control.alerts.alert import Alert
from control.alerts.readings import Match
from control.alerts.silences import MaintenanceWindow, Matcher, Silence

ALERT = Alert(
    rule="lag", cluster="prod", match=Match(subject="orders-7"), severity="warning", since_ms=1
)


def _ms(text: str, zone: str = "UTC") -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return round(moment.astimezone(UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("matcher", "fits"),
    [
        (Matcher(), True),
        (Matcher(subject="orders-*"), True),
        (Matcher(subject="orders"), False),
        (Matcher(rule="lag", cluster="prod"), True),
        (Matcher(rule="lag", cluster="test"), False),
    ],
)
def test_all_globs_of_a_matcher_must_fit(matcher: Matcher, fits: bool) -> None:
    assert matcher.fits(ALERT) is fits


def test_a_silence_lasts_from_its_begin_to_its_end() -> None:
    silence = Silence(id="s", matcher=Matcher(), from_ms=100, until_ms=200)
    assert [silence.covers(ALERT, at) for at in (99, 100, 199, 200)] == [False, True, True, False]
    assert silence.is_over(200)


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    window = MaintenanceWindow(
        name="w", matcher=Matcher(), days=("sat",), begin=time(22), end=time(2)
    )
    # 2026-11-28 is a Saturday.
    held = {
        text: window.holds(_ms(text))
        for text in (
            "2026-11-28T21:59", "2026-11-28T22:00", "2026-11-29T01:59", "2026-11-29T02:00",
            "2026-11-28T01:00", "2026-11-29T23:00",
        )
    }  # fmt: skip
    assert list(held.values()) == [False, True, True, False, False, False]


@pytest.mark.parametrize(
    ("at", "spans"),
    [
        ("2026-11-28T23:00", ("2026-11-28T22:00", "2026-11-29T02:00")),
        ("2026-11-29T01:00", ("2026-11-28T22:00", "2026-11-29T02:00")),
        ("2026-11-29T12:00", None),
    ],
)
def test_a_window_that_lasts_is_a_silence_until_its_end(
    at: str, spans: tuple[str, str] | None
) -> None:
    window = MaintenanceWindow(name="patches", matcher=Matcher(), begin=time(22), end=time(2))
    found = window.silence_at(_ms(at))
    assert (found and (found.from_ms, found.until_ms)) == (spans and tuple(map(_ms, spans)))
    assert found is None or (found.id, found.covers(ALERT, _ms(at))) == ("patches", True)


def test_a_window_follows_the_clock_of_its_place_through_summer_time() -> None:
    window = MaintenanceWindow(
        name="w", matcher=Matcher(), begin=time(2), end=time(4), zone=ZoneInfo("Europe/Berlin")
    )
    for day in ("2026-03-28", "2026-03-30", "2026-12-01"):
        assert window.holds(_ms(f"{day}T02:30", "Europe/Berlin"))
        assert not window.holds(_ms(f"{day}T04:00", "Europe/Berlin"))
