"""Decides when a move yields to consumer groups, and when it goes on. Pure.

standing reading of a group                                      next
======== ======================================================= ========
(first)  its oldest unread record is too old already             EXCUSED
(first)  otherwise                                               CALM
CALM     READINGS in a row: too old, and its lag grows           BEHIND
BEHIND   READINGS in a row: younger than half of too old         CALM
BEHIND   the move has yielded for its longest time, or an        EXCUSED
         operator lets it go on
EXCUSED  READINGS in a row: younger than half of too old         CALM
any      no members: it is left out of the readings              stays
======== ======================================================= ========

The move yields while a group is BEHIND and has members. "Too old" and its half are far apart, and
single readings do not count, so a group at the edge does not make the move stop and go. Members
commit every few seconds, and lag falls with each commit, so it grows where the least lag of the
newer half of the window is above the least of the older half.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from control.move.yields import YieldRules

READINGS: Final = 2
SAMPLES_MAX: Final = 64
"""Of a group; they span at most the time after which a record is too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """A group with members, on the partitions of a move."""

    lag: int
    """Records."""
    is_late: bool
    """Whether an unread record is older than ``YieldRules.behind_s``."""
    is_caught_up: bool
    """Whether all unread records are younger than half of it."""


class YieldChange(Enum):
    """A change that a reading makes."""

    EXCUSED = auto()
    """These were behind before, and do not hold the move."""
    BEGINS = auto()
    """The move yields to these from now on."""
    ENDS = auto()
    """Nobody is behind any more."""
    GIVES_UP = auto()
    """These are still behind, and the move goes on."""


class _Standing(Enum):
    CALM = auto()
    BEHIND = auto()
    EXCUSED = auto()


@dataclass(slots=True)
class _Group:
    standing: _Standing
    lags: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))
    falling: int = 0
    """Readings in a row."""
    well: int = 0


@dataclass(slots=True)
class ConsumerYield:
    """Whether one move yields. Times are a monotonic clock in seconds, and increase."""

    rules: YieldRules
    held_by: Collection[str] = ()
    """Groups to which the move yielded before a crash."""
    lags: Mapping[str, int] | None = None
    """Records of the newest reading, by group; None: there was none yet."""
    _groups: dict[str, _Group] = field(default_factory=dict)
    _since_s: float | None = None

    def __post_init__(self) -> None:
        self._groups = {group: _Group(_Standing.BEHIND) for group in self.held_by}

    @property
    def behind(self) -> tuple[str, ...]:
        """Groups to which it yields now, by name; empty: it goes on."""
        # Until the first reading after a crash it yields as before.
        is_yielding = self._since_s is not None or self.lags is None
        return tuple(sorted(self._behind())) if is_yielding else ()

    def observe(
        self, groups: Mapping[str, GroupReading] | None, at_s: float
    ) -> tuple[tuple[YieldChange, tuple[str, ...]], ...]:
        """The changes that one reading makes; None: the cluster did not answer, which changes no
        group's standing, and time passes all the same."""
        before, excused = self.behind, []
        if groups is not None:
            self.lags = {name: reading.lag for name, reading in groups.items()}
            excused = [name for name in sorted(groups) if self._take(name, groups[name], at_s)]
        changes = [(YieldChange.EXCUSED, tuple(excused))] if excused else []
        changes += self._changed(before, at_s)
        return tuple(changes)

    def go_on(self) -> tuple[str, ...]:
        """Excuses the groups that are behind, as an operator asks; answers their names."""
        held, self._since_s = self.behind, None
        self._excuse(self._behind())
        return held

    def _changed(
        self, before: Collection[str], at_s: float
    ) -> Iterable[tuple[YieldChange, tuple[str, ...]]]:
        behind = tuple(sorted(self._behind()))
        if not behind:
            self._since_s = None
            return [(YieldChange.ENDS, tuple(before))] if before else []
        if self._since_s is None:
            self._since_s = at_s
            return [] if before else [(YieldChange.BEGINS, behind)]
        if at_s - self._since_s >= self.rules.at_most_s:
            self._since_s = None
            self._excuse(behind)
            return [(YieldChange.GIVES_UP, behind)]
        return []

    def _behind(self) -> list[str]:
        """Before the first reading after a crash all of them count."""
        known = self._groups if self.lags is None else self.lags
        return [
            name
            for name, group in self._groups.items()
            if group.standing is _Standing.BEHIND and name in known
        ]

    def _excuse(self, names: Iterable[str]) -> None:
        for name in names:
            self._groups[name].standing = _Standing.EXCUSED

    def _take(self, name: str, reading: GroupReading, at_s: float) -> bool:
        """Whether the group is excused from its first reading on."""
        group = self._groups.get(name)
        is_new = group is None
        if group is None:
            standing = _Standing.EXCUSED if reading.is_late else _Standing.CALM
            group = self._groups[name] = _Group(standing)
        group.lags.append((at_s, reading.lag))
        while group.lags[0][0] < at_s - self.rules.behind_s:
            group.lags.popleft()
        falls = reading.is_late and _grows(group.lags)
        group.falling = group.falling + 1 if falls else 0
        group.well = group.well + 1 if reading.is_caught_up else 0
        if group.well >= READINGS:
            group.standing = _Standing.CALM
        elif group.standing is _Standing.CALM and group.falling >= READINGS:
            group.standing = _Standing.BEHIND
        return is_new and group.standing is _Standing.EXCUSED


def _grows(lags: Collection[tuple[float, int]]) -> bool:
    """Compares the least lags of both halves: of 40, 0, 60, 20 records it grew from 0 to 20."""
    times = [at_s for at_s, _ in lags]
    middle_s = (times[0] + times[-1]) / 2
    older = [lag for at_s, lag in lags if at_s < middle_s]
    newer = [lag for at_s, lag in lags if at_s >= middle_s]
    return bool(older) and min(newer) > min(older)
