"""Moments as people write them: in links, in fields and on the command line."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from control.model.units import parse_duration

AGO: Final = re.compile(r"-?(?P<length>\d+(?:\.\d+)? ?[smhd])(?: ago)?", re.IGNORECASE)
"""``10m``, ``-1.5h``, ``2 d ago``."""
_CLOCK: Final = re.compile(r"(?P<clock>\d{1,2}:\d{2}(?::\d{2})?)(?P<zone>Z|[+-]\d{2}:?\d{2})?")
_EPOCH: Final = re.compile(r"\d{9,13}")
_EPOCH_BEGINS: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_MAX: Final = 100_000_000_000
"""A larger number is in milliseconds: as seconds it would be the year 5138."""
_CALENDAR_MS: Final = 253_370_764_800_000
"""The year 9999 begins, in milliseconds since the epoch: later ones no calendar of ours knows."""
_TIME_SPAN_MS: Final = 30 * 365 * 86_400_000
"""A number that is a time of the last or next 30 years was probably meant as one."""
_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}
MOMENT_FORMS: Final = "10m (ago), 18:05, 2026-11-21T09:00"
"""For where a number is an offset."""
MOMENT_HELP: Final = f"{MOMENT_FORMS}, seconds or milliseconds since 1970"


class TimeError(ValueError):
    """Not a time; the text says what would be."""


def parse_moment(text: str, *, now_ms: int) -> int:
    """Milliseconds since the epoch of ``10m`` or ``-10m`` (ago), ``now``, ``18:05`` or ``18:05:30``
    (the last time that clocks showed it), ``2026-11-21T09:00`` (ISO 8601), seconds or milliseconds
    since the epoch. Without a zone a time is that of this machine.

    Raises:
        TimeError: none of these.
    """
    try:
        at_ms = _moment(text.strip().removeprefix("@").strip(), now_ms)
    except (ValueError, OverflowError):
        at_ms = -1
    if not 0 <= at_ms < _CALENDAR_MS:
        raise TimeError(f"{text!r} is no time; write {MOMENT_HELP}")
    return at_ms


def time_meant(number: int, *, now_ms: int, units: Iterable[str]) -> int | None:
    """The time, in milliseconds since 1970, that a number is in the first of these units that
    makes it one of our days; None: it is no such time."""
    for unit in units:
        at_ms = number * _NANOSECONDS[unit] // _NANOSECONDS["ms"]
        if abs(at_ms - now_ms) <= _TIME_SPAN_MS:
            return at_ms
    return None


def iso_text(at_ms: int) -> str:
    """``2026-11-21T09:00:00Z``."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
    return moment.replace("+00:00", "Z")


def _moment(words: str, now_ms: int) -> int:
    if words.lower() == "now":
        return now_ms
    ago = AGO.fullmatch(words)
    if ago:
        return now_ms - int(parse_duration(ago["length"]) or 0)
    if _EPOCH.fullmatch(words):
        number = int(words)
        return number * 1_000 if number < _SECONDS_MAX else number
    clock = _CLOCK.fullmatch(words)
    if clock:
        return _last_time(clock["clock"], clock["zone"] or "", now_ms)
    return _milliseconds(datetime.fromisoformat(words).astimezone())


def _last_time(clock: str, zone: str, now_ms: int) -> int:
    """Today's, or yesterday's where today's is still to come."""
    hour, _, rest = clock.partition(":")
    wanted = datetime.fromisoformat(f"2000-01-01T{int(hour):02}:{rest}{zone}")
    now = datetime.fromtimestamp(now_ms / 1000, tz=wanted.tzinfo)
    days = (
        datetime.combine(now.date() - timedelta(days=back), wanted.time(), tzinfo=wanted.tzinfo)
        for back in (-1, 0, 1)
    )
    times = [_milliseconds(day.astimezone()) for day in days]
    return next(at_ms for at_ms in times if at_ms <= now_ms)


def _milliseconds(moment: datetime) -> int:
    """Since the epoch, to the millisecond: seconds as a float would lose one now and then."""
    return (moment - _EPOCH_BEGINS) // timedelta(milliseconds=1)
