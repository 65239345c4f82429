"""Decides when the next partition of a topic may be submitted. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

LATE_S: Final = 2.0
"""So much later than may be something was asked for without the next being later as well."""


@dataclass(slots=True)
class Turns:
    """Times at which each topic may submit its next partition; `now_s` is everywhere the same
    monotonic clock in seconds."""

    _open_s: dict[str, float] = field(default_factory=dict)

    def opens_s(self, topic: str, gap_s: float) -> float:
        """From when on one of the topic may be asked for; one after which nobody waits needs no
        turn."""
        return self._open_s.get(topic, 0.0) if gap_s else 0.0

    def take(self, topic: str, gap_s: float, now_s: float) -> bool:
        """Whether one may be asked for now; who is told so asks."""
        opens_s = self.opens_s(topic, gap_s)
        if opens_s > now_s:
            return False
        if gap_s:
            is_first = topic not in self._open_s
            self._open_s[topic] = gap_s + (now_s if is_first else max(opens_s, now_s - LATE_S))
        return True

    def take_all(self, gaps: Iterable[tuple[str, float]], now_s: float) -> float:
        """All of them in their order, each as soon as may be; when the last of them may."""
        last_s = now_s
        for topic, gap_s in gaps:
            if gap_s:
                at_s = max(self.opens_s(topic, gap_s), now_s)
                self._open_s[topic] = at_s + gap_s
                last_s = max(last_s, at_s)
        return last_s

    def left_s(self, gaps: Iterable[tuple[str, float]], now_s: float) -> float:
        """Seconds until the last of these may be asked for."""
        return Turns(dict(self._open_s)).take_all(gaps, now_s) - now_s
