"""When the logs of this broker ended where, read now and then: it costs looks into indexes."""

from collections.abc import Callable, Collection
from typing import Any, Final

from broker.log.errors import StorageError
from broker.metrics_schema import LOG_POINTS_MAX

AGE_MS_MAX: Final = 60_000
"""A log is looked at again after so long."""
LOOKS_PER_ROUND_MAX: Final = 250
"""At logs that were looked at before, and at others: the rest comes in the next rounds."""

Points = tuple[int, ...]
"""Offsets and milliseconds since the epoch by turns, oldest first."""


class LogAges:
    """``log_points`` of the samples: told when they were looked at, known until the next time."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._looked_ms: dict[tuple[str, int], int] = {}
        self._looks = {True: 0, False: 0}
        self._told: list[tuple[str, int]] = []
        """Logs that the round looked at."""

    def news(self, log: Any) -> Points | None:
        """Points of a log that this broker leads; None when it is not due, or has none.

        An empty log costs no look, and is due as soon as something is written.
        """
        if log.log_end_offset == log.log_start_offset:
            return None
        name, now_ms = (log.topic, log.partition), self._now_ms()
        is_known = name in self._looked_ms
        is_due = not is_known or now_ms - self._looked_ms[name] >= AGE_MS_MAX
        if not is_due or self._looks[is_known] >= LOOKS_PER_ROUND_MAX:
            return None
        self._looks[is_known] += 1
        self._looked_ms[name] = now_ms
        self._told.append(name)
        return _points_of(log) or None

    def end_round(self, present: Collection[tuple[str, int]]) -> None:
        """The round has arrived; forget the logs that are not present."""
        self._looked_ms = {name: it for name, it in self._looked_ms.items() if name in present}
        self._begin()

    def forget(self) -> None:
        """Look anew at what this round looked at: it may not have arrived."""
        for name in self._told:
            self._looked_ms.pop(name, None)
        self._begin()

    def _begin(self) -> None:
        self._looks = {True: 0, False: 0}
        self._told.clear()


def _points_of(log: Any) -> Points:
    try:
        ends = log.end_times(LOG_POINTS_MAX)
    except StorageError:
        return ()  # the disk's trouble is told elsewhere; samples go on
    return tuple(figure for point in ends for figure in point)
