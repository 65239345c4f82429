"""The only place that makes text of numbers, for both screens and the command line.

Every figure has a unit. ``n/a`` stands where a figure cannot be read, ``–`` where there is none,
``≈`` before an estimate; 0 is never written for unknown. Bytes are binary (KiB, MiB); thousands
are parted by commas; minus is a real minus sign, so that columns of signed figures line up.
"""

import math
import string
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from control.model.units import (
    ESTIMATE,
    MINUS,
    NA,
    NONE,
    Number,
    byte_rate_text,
    bytes_text,
    duration_text,
    estimate_mark,
    is_known,
    plain_duration,
)

__all__ = [
    "AT_LEAST",
    "ESTIMATE",
    "MINUS",
    "NA",
    "NONE",
    "Number",
    "ToText",
    "age_text",
    "byte_rate_text",
    "bytes_text",
    "clock_text",
    "count_text",
    "duration_text",
    "ids_text",
    "is_known",
    "latency_text",
    "percent_text",
    "phrase",
    "plural_text",
    "record_rate_text",
    "signed_percent_text",
    "signed_record_rate_text",
]

AT_LEAST: Final = "≥ "
"""Before a time whose beginning nobody saw."""

ToText = Callable[[Number], str]

_RATE_STEPS: Final = ((1e9, " G"), (1e6, " M"), (1e4, " k"))


def count_text(value: Number, *, estimated: bool = False) -> str:
    """``12,904``."""
    if value is None or math.isnan(value):
        return NA
    # An offset of 64 bits has more digits than a float.
    digits = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"
    return f"{estimate_mark(estimated)}{digits}".replace("-", MINUS)


def record_rate_text(value: Number) -> str:
    """``1,204 /s``; ``0.4 /s`` below ten; ``41 k/s`` when it is a lot."""
    if value is None or math.isnan(value):
        return NA
    size = abs(value)
    for step, unit in _RATE_STEPS:
        if size >= step:
            return f"{value / (step if step != 1e4 else 1e3):,.0f}{unit}/s".replace("-", MINUS)
    digits = 1 if 0 < size < 9.95 else 0
    return f"{value:,.{digits}f} /s".replace("-", MINUS)


def signed_record_rate_text(value: Number) -> str:
    """``+32 /s``, ``−4 /s``: how fast lag grows."""
    if value is None or math.isnan(value):
        return NA
    return ("+" if value > 0 else "") + record_rate_text(value)


def percent_text(value: Number) -> str:
    """``58 %``; one digit after the point below ten."""
    if value is None or math.isnan(value):
        return NA
    digits = 1 if 0 < abs(value) < 9.95 and abs(value - round(value)) >= 0.05 else 0
    return f"{value:.{digits}f} %".replace("-", MINUS)


def signed_percent_text(value: Number) -> str:
    """``+58 %``, ``−8 %``, ``0 %``."""
    if value is None or math.isnan(value):
        return NA
    whole = round(value)
    return f"{whole:+d} %".replace("-", MINUS) if whole else "0 %"


def latency_text(duration_ms: Number) -> str:
    """``3.1 ms``: for what usually takes less than a second."""
    if duration_ms is None or math.isnan(duration_ms):
        return NA
    if duration_ms >= 1000:
        return plain_duration(duration_ms)
    return f"{duration_ms:.1f} ms" if duration_ms < 100 else f"{duration_ms:.0f} ms"


def age_text(age_ms: Number) -> str:
    """``1.2 s ago``; ``never`` where nothing was ever read."""
    return f"{duration_text(age_ms)} ago" if is_known(age_ms) else "never"


def clock_text(
    at_ms: Number,
    *,
    now_ms: Number = None,
    zone: tzinfo | None = None,
    with_seconds: bool = False,
) -> str:
    """``12:04`` or ``12:04:31``; with the day before it when that is not the day of ``now_ms``.

    Local time of this machine unless ``zone`` says otherwise.
    """
    if at_ms is None or math.isnan(at_ms):
        return NA
    try:
        at = _local(at_ms, zone)
    except (ValueError, OverflowError, OSError):
        return NA  # beyond every calendar: an estimate at a byte per second
    if now_ms is not None and _local(now_ms, zone).date() != at.date():
        return f"{at:%Y-%m-%d %H:%M}"
    return f"{at:%H:%M:%S}" if with_seconds else f"{at:%H:%M}"


def date_time_text(at_ms: Number, *, zone: tzinfo | None = None) -> str:
    """``2026-11-27 12:04:31``, local time of this machine unless ``zone`` says otherwise."""
    if at_ms is None or math.isnan(at_ms):
        return NA
    try:
        return f"{_local(at_ms, zone):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return NA


def ids_text(ids: Sequence[int] | None) -> str:
    """``101, 102``, in the order given: in an assignment the first is the preferred leader."""
    if ids is None:
        return NA
    return ", ".join(str(item) for item in ids) if ids else NONE


def plural_text(count: Number, noun: str) -> str:
    """``1 partition``, ``3 partitions``; unknown is n/a without the noun."""
    if not is_known(count):
        return NA
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"


def phrase(template: str, facts: Mapping[str, Any]) -> str:
    """Fill a finding's template: ``{lag:count}``, ``{age:duration}``, ``{n:plural:record}``.

    Facts without a format are put in as they are; an unknown fact is n/a.
    """
    return _PhraseFormatter().vformat(template, (), dict(facts))


class _PhraseFormatter(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        kind, _, noun = format_spec.partition(":")
        if kind == "plural":
            return plural_text(value, noun)
        if kind in _KINDS:
            return _KINDS[kind](value)
        return NA if value is None else str(value)


_KINDS: Final[Mapping[str, Callable[[Number], str]]] = {
    "bytes": bytes_text,
    "byte_rate": byte_rate_text,
    "count": count_text,
    "record_rate": record_rate_text,
    "percent": percent_text,
    "signed_percent": signed_percent_text,
    "duration": duration_text,
    "clock": clock_text,
}


def _local(at_ms: float, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone(zone)
