"""The hours of each day in which a move may begin something, such as 01:00 to 05:00. Pure.

Wall-clock time of a named zone decides, at each moment anew. So a window follows daylight saving:
of hours that a clock leaves out nothing is open, and hours that come twice are open twice.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from control.model.units import duration_text
from control.move.check import Check, Verdict

DAY: Final = timedelta(days=1)
MINUTE_MS: Final = 60_000
CHANGE_WITHIN_MINUTES: Final = 3 * 24 * 60
"""A window that a clock leaves out on one day opens on the next."""
SPANS_MAX: Final = 800
"""More than a year of nights is no estimate."""
_DAY_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def parse_day_time(text: str) -> time | None:
    """``01:00`` or ``1:00``; null: the text is no time of a day."""
    found = _DAY_TIME.fullmatch(text.strip())
    return None if found is None else time(int(found[1]), int(found[2]))


def zone_named(name: str) -> ZoneInfo:
    """A zone such as Europe/Berlin.

    :raises ValueError: this machine knows none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"time zone {name!r} is unknown here") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveWindow:
    """From ``start`` until before ``until`` on each day; over midnight where that is earlier."""

    start: time
    until: time
    zone: ZoneInfo

    def __post_init__(self) -> None:
        if self.start == self.until:
            raise ValueError("a window that starts when it ends never opens")

    def is_open(self, at_ms: float) -> bool:
        """Whether something may begin at this moment."""
        now = self._local(at_ms).time()
        if self.start < self.until:
            return self.start <= now < self.until
        return now >= self.start or now < self.until

    def opens_ms(self, at_ms: float) -> float:
        """This moment where it is open, else the next at which it is."""
        return at_ms if self.is_open(at_ms) else self.changes_ms(at_ms)

    def changes_ms(self, at_ms: float) -> float:
        """The next moment at which it opens or closes."""
        is_open, now = self.is_open(at_ms), self._local(at_ms)
        wanted = datetime.combine(now, self.until if is_open else self.start)
        ahead = (wanted - now.replace(tzinfo=None)) % DAY
        then_ms = at_ms + ahead / timedelta(milliseconds=1)
        if self._local(then_ms).utcoffset() == now.utcoffset():
            return then_ms
        minute = int(at_ms // MINUTE_MS) + 1  # A clock is set between: look at each minute.
        minutes = range(minute, minute + CHANGE_WITHIN_MINUTES)
        return next(n * MINUTE_MS for n in minutes if self.is_open(n * MINUTE_MS) != is_open)

    def done_ms(self, at_ms: float, work_s: float) -> float | None:
        """When it has been open for so long from this moment on; null: not within a year."""
        left_ms = work_s * 1000
        for _ in range(SPANS_MAX):
            ends_ms = self.changes_ms(at_ms)
            if self.is_open(at_ms):
                if left_ms <= ends_ms - at_ms:
                    return at_ms + left_ms
                left_ms -= ends_ms - at_ms
            at_ms = ends_ms
        return None

    def opening_words(self, at_ms: float) -> str:
        """``01:00 (Europe/Berlin)``, the next time that it opens."""
        return f"{self._local(self.opens_ms(at_ms)):%H:%M} ({self.zone.key})"

    @property
    def words(self) -> str:
        """``01:00 to 05:00 (Europe/Berlin)``."""
        return words_of(self.document())

    def document(self) -> dict[str, str]:
        """JSON values."""
        start, until = (f"{at:%H:%M}" for at in (self.start, self.until))
        return {"start": start, "until": until, "zone": self.zone.key}

    @classmethod
    def parse(cls, document: Mapping[str, Any] | None) -> Self | None:
        """The inverse of document(); null of a move that may begin at any time.

        :raises ValueError: no window, or a zone that this machine does not know.
        """
        if document is None:
            return None
        start, until = (parse_day_time(str(document.get(name))) for name in ("start", "until"))
        if start is None or until is None:
            raise ValueError("window: start and until are times of a day such as 01:00")
        return cls(start=start, until=until, zone=zone_named(str(document.get("zone"))))

    def _local(self, at_ms: float) -> datetime:
        return datetime.fromtimestamp(at_ms / 1000, self.zone)


def window_check(window: MoveWindow, seconds: float | None, *, now_ms: float) -> Check:
    """The window in a plan's preview; ``seconds``: of copying, at most."""
    opens_ms = window.opens_ms(now_ms)
    first = "which is open now"
    if opens_ms > now_ms:
        first = f"first in {duration_text(opens_ms - now_ms)}"
    reason = f"waves begin from {window.words}, {first}"
    done_ms = None if seconds is None else window.done_ms(opens_ms, seconds)
    if done_ms is not None:
        reason += f"; done in {duration_text(done_ms - now_ms)} at the latest"
    copies = f"copies that run at {window.until:%H:%M} arrive all the same"
    return Check(name="window", verdict=Verdict.OK, reason=f"{reason}; {copies}")


def words_of(document: Mapping[str, Any]) -> str:
    """The words of a window, also where this machine does not know its zone."""
    return f"{document['start']} to {document['until']} ({document['zone']})"
