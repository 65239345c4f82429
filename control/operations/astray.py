"""Partitions that were asked to move and neither move nor are there. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from control.model.ids import TopicPartition

ASTRAY_READINGS: Final = 5
ASTRAY_S: Final = 15.0
"""A partition neither moving nor there for so many readings and so long was taken back: replicas
come from any broker, and one that is busy hears late of what has begun or arrived."""


@dataclass(frozen=True, slots=True)
class _Astray:
    since_s: float
    readings: int


class AstrayWatch:
    """Counts, of each partition that was asked for, for how long it has been nowhere."""

    def __init__(self) -> None:
        self._asked: dict[TopicPartition, _Astray | None] = {}
        self._now_s = 0.0

    @property
    def asked(self) -> frozenset[TopicPartition]:
        """What was asked to move."""
        return frozenset(self._asked)

    def note_asked(self, keys: Iterable[TopicPartition]) -> None:
        """These were just asked to move."""
        self._asked |= dict.fromkeys(keys)

    def look(self, key: TopicPartition, *, is_astray: bool, now_s: float) -> None:
        """One more reading; `now_s` is a monotonic clock in seconds."""
        self._now_s = now_s
        before = self._asked[key]
        if not is_astray:
            self._asked[key] = None
        elif before is None:
            self._asked[key] = _Astray(now_s, 1)
        else:
            self._asked[key] = _Astray(before.since_s, before.readings + 1)

    def found(self) -> list[TopicPartition]:
        """Those that were taken back."""
        return [
            key
            for key, astray in self._asked.items()
            if astray is not None
            and astray.readings >= ASTRAY_READINGS
            and self._now_s - astray.since_s >= ASTRAY_S
        ]
