"""Units in words: bytes, rates and durations, for every room of control that speaks to people.

``n/a`` stands where a figure cannot be read, ``–`` where there is none, ``≈`` before an estimate.
"""

import math
import re
from collections.abc import Iterable
from typing import Final

NA: Final = "n/a"
NONE: Final = "–"
ESTIMATE: Final = "≈ "
MINUS: Final = "−"

Number = float | int | None

_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_RATE: Final = re.compile(r"(?P<amount>\d+(\.\d+)?)\s*((?P<unit>[KMGT])?i?B?(/s)?)", re.IGNORECASE)

TIMES_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DECIMAL: Final = r"-?(?:\d[\d,]*(?<!,)(?:\.\d+)?|\.\d+)"
"""Pattern of ``1,234.5`` or ``.5``, with one way only to match: long texts take no time."""
_DURATION: Final = re.compile(rf"(?P<amount>{DECIMAL})\s*(?P<unit>ms|s|m|h|d)?", re.IGNORECASE)


def is_known(value: Number) -> bool:
    """Neither None nor NaN."""
    return value is not None and not math.isnan(value)


def bytes_text(value: Number, *, estimated: bool = False) -> str:
    """``3.1 GiB``, ``812 B``."""
    if value is None or math.isnan(value):
        return NA
    size, unit = abs(float(value)), 0
    while size >= 1023.5 and unit < len(_BYTE_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    digits = 1 if unit and size < 99.95 else 0
    sign = MINUS if value < 0 else ""
    return f"{estimate_mark(estimated)}{sign}{size:.{digits}f} {_BYTE_UNITS[unit]}"


def byte_rate_text(value: Number) -> str:
    """``4.2 MiB/s``."""
    return f"{bytes_text(value)}/s" if is_known(value) else NA


def duration_text(duration_ms: Number, *, estimated: bool = False) -> str:
    """``3.1 ms``, ``0.3 s``, ``12 s``, ``4 m 10 s``, ``2 h 5 m``, ``6 d 3 h``."""
    if duration_ms is None or math.isnan(duration_ms):
        return NA
    return estimate_mark(estimated) + plain_duration(max(float(duration_ms), 0.0))


def estimate_mark(estimated: bool) -> str:
    """The mark before a figure that is estimated."""
    return ESTIMATE if estimated else ""


def plain_duration(duration_ms: float) -> str:
    """duration_text of a known figure."""
    seconds = duration_ms / 1000
    if seconds < 0.05:
        return f"{duration_ms:.1f} ms" if duration_ms else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two(whole, 60, "m", "s")
    if whole < 86_400:
        return _two(whole // 60, 60, "h", "m")
    return _two(whole // 3600, 24, "d", "h")


def _two(amount: int, base: int, big: str, small: str) -> str:
    high, low = divmod(amount, base)
    return f"{high} {big} {low} {small}" if low else f"{high} {big}"


def parse_byte_rate(text: str) -> int | None:
    """Bytes per second of ``1048576``, ``50MiB``, ``50 MiB/s`` or ``1.5G``; None: no rate.

    All units are binary, as in everything that is shown.
    """
    found = _RATE.fullmatch(text.strip())
    if found is None:
        return None
    return int(float(found["amount"]) * 1024 ** " KMGT".index((found["unit"] or " ").upper()))


def parse_duration(text: str) -> float | None:
    """Milliseconds of ``90s``, ``1.5h``, ``2 d``; without a unit they are milliseconds; None: no
    duration."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    return float(found["amount"].replace(",", "")) * TIMES_MS[(found["unit"] or "ms").lower()]


def brokers_text(ids: Iterable[int]) -> str:
    """``broker 1``, ``brokers 1, 2``: in their order."""
    found = sorted(ids)
    return f"{'broker' if len(found) == 1 else 'brokers'} {', '.join(map(str, found))}"


def counted(count: int, noun: str) -> str:
    """``1 partition``, ``3 partitions``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
