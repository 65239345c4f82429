"""Times as people write them in links and fields."""

import re
from datetime import datetime
from typing import Final

from control.views.series import Span

_AGO: Final = re.compile(r"-?(?P<amount>\d+) ?(?P<unit>[smhd])")
_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_CALENDAR_MS: Final = 253_370_764_800_000
"""The year 9999 begins, in milliseconds since the epoch: later ones no calendar of ours knows."""
RANGE_DEFAULT: Final = "10m"
RANGES: Final = {
    "10m": "10 minutes",
    "1h": "1 hour",
    "6h": "6 hours",
    "1d": "1 day",
    "7d": "7 days",
    "30d": "30 days",
}
"""How much of the past a chart shows; the store keeps it coarser the older it is."""


class TimeError(ValueError):
    """Not a time; the text says what would be."""


def parse_moment(text: str, *, now_ms: int) -> int:
    """Milliseconds since the epoch of ``2026-11-21T09:00`` (local time unless it names a zone),
    ``10m`` (ago) or a number of milliseconds.

    Raises:
        TimeError: none of these.
    """
    try:
        at_ms = _moment(text.strip(), now_ms)
    except (ValueError, OverflowError):
        at_ms = -1
    if not 0 <= at_ms < _CALENDAR_MS:
        raise TimeError(f"{text!r} is no time such as 2026-11-21T09:00, 30s, 10m, 2h or 3d (ago)")
    return at_ms


def _moment(words: str, now_ms: int) -> int:
    ago = _AGO.fullmatch(words)
    if ago:
        return now_ms - int(ago["amount"]) * _MS[ago["unit"]]
    if words.isdecimal() and len(words) > 8:
        return int(words)
    return int(datetime.fromisoformat(words).astimezone().timestamp() * 1000)


def span_of(at: str, range_: str, *, now_ms: int) -> Span:
    """The stretch that charts show: ``range_`` long, up to ``at`` (empty: now).

    Raises:
        TimeError: a time or range that cannot be read.
    """
    length = _AGO.fullmatch(range_ or RANGE_DEFAULT)
    if length is None:
        raise TimeError(f"range {range_!r} is not like {', '.join(RANGES)}")
    until = parse_moment(at, now_ms=now_ms) if at else now_ms
    return Span.last(int(length["amount"]) * _MS[length["unit"]], now_ms=until)
