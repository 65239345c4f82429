"""Times as people write them, and the stretches of time that charts show."""

from typing import Final

from control.model.moments import AGO, MOMENT_HELP, TimeError, parse_moment
from control.model.units import parse_duration
from control.views.series import Span

__all__ = ["MOMENT_HELP", "RANGES", "RANGE_DEFAULT", "TimeError", "parse_moment", "span_of"]

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


def span_of(at: str, range_: str, *, now_ms: int) -> Span:
    """The stretch that charts show: ``range_`` long, up to ``at`` (empty: now).

    Raises:
        TimeError: a time or range that cannot be read.
    """
    length = AGO.fullmatch(range_ or RANGE_DEFAULT)
    length_ms = parse_duration(length["length"]) if length else None
    if not length_ms:
        raise TimeError(f"range {range_!r} is not like {', '.join(RANGES)}")
    until = parse_moment(at, now_ms=now_ms) if at else now_ms
    return Span.last(int(length_ms), now_ms=until)
