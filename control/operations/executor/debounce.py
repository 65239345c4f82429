"""Finds partitions about which something is true for many readings in a row. Pure.

Replicas come from any broker: one that has just started knows of no topic yet, and one that is busy
hears late of what has begun or arrived. What a single reading misses is therefore not believed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from control.model.ids import TopicPartition

LASTING_READINGS: Final = 5
LASTING_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class _Seen:
    since_s: float
    readings: int


class Debounce:
    """Counts, of each partition, for how long something is so without a break."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, _Seen] = {}
        self._now_s = 0.0

    @property
    def seen(self) -> Collection[TopicPartition]:
        """Partitions about which it was true at the last reading."""
        return self._seen.keys()

    def read(self, keys: Collection[TopicPartition], now_s: float) -> None:
        """Notes the partitions about which it is true now; `now_s` is a monotonic clock in
        seconds."""
        self._now_s = now_s
        before = {key: self._seen.get(key, _Seen(now_s, 0)) for key in keys}
        self._seen = {key: _Seen(seen.since_s, seen.readings + 1) for key, seen in before.items()}

    def found(self) -> list[TopicPartition]:
        """Partitions about which it has been true for LASTING_READINGS and LASTING_S."""
        return [
            key
            for key, seen in self._seen.items()
            if seen.readings >= LASTING_READINGS and self._now_s - seen.since_s >= LASTING_S
        ]
