"""Silences and maintenance windows: alerts that match them are not told while they last."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from fnmatch import fnmatchcase
from typing import Final, Protocol

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SILENCE_MS_MAX: Final = 366 * 86_400_000
SILENCES_MAX: Final = 1_000
ANY: Final = "*"
WINDOW: Final = "maintenance window"
"""Who silences while a window of the settings lasts."""


class Told(Protocol):
    """The names of an alert by which it is chosen."""

    @property
    def rule(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def cluster(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """Chooses alerts by globs, such as ``orders-*``; all three must fit."""

    rule: str = ANY
    subject: str = ANY
    cluster: str = ANY

    def fits(self, alert: Told) -> bool:
        return (
            fnmatchcase(alert.rule, self.rule)
            and fnmatchcase(alert.subject, self.subject)
            and fnmatchcase(alert.cluster, self.cluster)
        )

    @property
    def words(self) -> str:
        """``rule lag, subject orders-*``; ``all alerts``."""
        parts = (("rule", self.rule), ("subject", self.subject), ("cluster", self.cluster))
        return ", ".join(f"{name} {it}" for name, it in parts if it != ANY) or "all alerts"


class Quiet(Protocol):
    """Keeps alerts from being told."""

    def covers(self, alert: Told, at_ms: int) -> bool:
        """Whether this alert is not told at this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Set by somebody, for a stretch of time; one that begins later is a planned maintenance."""

    id: str
    matcher: Matcher
    from_ms: int
    until_ms: int
    who: str = ""
    why: str = ""

    def covers(self, alert: Told, at_ms: int) -> bool:
        return self.from_ms <= at_ms < self.until_ms and self.matcher.fits(alert)

    def is_over(self, at_ms: int) -> bool:
        return at_ms >= self.until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWindow:
    """Hours of the week, by the clock of a place; one that ends before it begins ends next day."""

    name: str
    matcher: Matcher
    days: Sequence[str] = DAYS
    """The days on which it begins."""
    begin: time
    end: time
    zone: tzinfo = UTC

    def covers(self, alert: Told, at_ms: int) -> bool:
        return self.holds(at_ms) and self.matcher.fits(alert)

    def holds(self, at_ms: int) -> bool:
        """Whether it lasts at this time."""
        return self.silence_at(at_ms) is not None

    def silence_at(self, at_ms: int) -> Silence | None:
        """It as a silence, from its last begin to its next end; None: it does not last now."""
        now = datetime.fromtimestamp(at_ms / 1000, self.zone)
        clock, one_day = now.time(), timedelta(days=1)
        is_overnight = self.begin >= self.end
        began = now - one_day if is_overnight and clock < self.end else now
        is_within = self.begin <= clock or began is not now
        if not self._begins_on(began) or not is_within or (not is_overnight and clock >= self.end):
            return None
        ends = began + one_day if is_overnight else began
        return Silence(
            id=self.name,
            matcher=self.matcher,
            from_ms=_on(began, self.begin),
            until_ms=_on(ends, self.end),
            who=WINDOW,
            why=self.name,
        )

    def _begins_on(self, day: datetime) -> bool:
        return DAYS[day.weekday()] in self.days


def _on(day: datetime, clock: time) -> int:
    return round(datetime.combine(day.date(), clock, tzinfo=day.tzinfo).timestamp() * 1_000)
