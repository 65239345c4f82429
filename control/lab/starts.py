"""Where to begin reading, as people write it."""

import re
from datetime import datetime, tzinfo
from typing import Final

from control.kafka.reader import Start, StartKind

START_HELP: Final = "-50 (the last 50), earliest, latest, an offset, 10m (ago), 2026-11-21T09:00"
_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_start(text: str, *, now_ms: int, zone: tzinfo | None = None) -> Start:
    """A place in a topic. Times without a zone are of `zone`, or of this machine.

    >>> parse_start("-50", now_ms=0).value
    50

    :raises ValueError: with what can be written instead.
    """
    text = text.strip()
    if text in ("earliest", "latest"):
        return Start(kind=StartKind(text))
    if re.fullmatch(r"-\d+", text):
        return Start(kind=StartKind.LAST, value=int(text[1:]))
    if text.isdecimal():
        return Start(kind=StartKind.OFFSET, value=int(text))
    ago = _AGO.fullmatch(text)
    if ago is not None:
        since_ms = now_ms - int(float(ago[1]) * _SECONDS[ago[2]] * 1000)
        return Start(kind=StartKind.TIMESTAMP, value=since_ms)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of: {START_HELP}") from None
    if at.tzinfo is None and zone is not None:
        at = at.replace(tzinfo=zone)
    return Start(kind=StartKind.TIMESTAMP, value=int(at.timestamp() * 1000))
