"""When a log ended at an offset, and how far from the truth that is at most. Pure."""

from typing import NamedTuple

import numpy as np

from spark_metrics.figures.column import Column, column, greatest, least, where
from spark_metrics.figures.lists import Lists


class Reached(NamedTuple):
    """Unknown of an offset that is older than what is known of the log."""

    ms: Column
    error_ms: Column
    """The log ended there no more than so long before or after."""

    def closer(self, other: "Reached") -> "Reached":
        """The one of two that errs less."""
        takes = self.ms.is_unknown | (other.error_ms < self.error_ms)
        return Reached(*(where(takes, two, one) for one, two in zip(self, other, strict=True)))

    def where(self, condition: Column) -> "Reached":
        return Reached(*(it.where(condition) for it in self))


class LogTimes(NamedTuple):
    """Known times of the end of each row's log."""

    times: Lists
    """When it was read, newest first, …"""
    offsets: Lists
    """… where it ended then, …"""
    errors: Lists
    """… and how far at most the line to the next older one is from the truth."""
    records: Lists
    """Offsets and timestamps of records by turns, oldest first."""

    def at(self, rows: Column) -> "LogTimes":
        return LogTimes(*(it.at(rows) for it in self))

    def reached(self, offset: Column) -> Reached:
        """When the log ended at these offsets.

        A log only grows, so that was between two readings with the offset between them. Timestamps
        of records tell it better where two of them are closer together; what they tell beyond the
        readings does not count.
        """
        later = self.offsets.leading(np.greater, offset)
        is_between = column((later > 0) & (later < self.offsets.counts))
        newer, older = later - 1, later
        since, until = (self.times.item(it).where(is_between) for it in (older, newer))
        first, last = (self.offsets.item(it) for it in (older, newer))
        ms = _on_line(offset, (since, first), (until, last))
        within_ms = greatest(ms - since, until - ms)
        by_points = Reached(ms, least(within_ms, self.errors.item(newer)).where(ms.is_known))
        last_told = self.records.item(self.records.counts - 2)
        rows = np.flatnonzero((offset < last_told).is_sure.numpy())
        if not len(rows):
            return by_points
        at = column(rows)
        found = self.at(at)._between_records(offset.take(at))
        ms, since, until = (
            greatest(least(it, until.take(at)), since.take(at)).where(it.is_known) for it in found
        )
        by_records = Reached(ms, greatest(ms - since, until - ms))
        return by_points.closer(Reached(*(it.spread(rows, len(offset)) for it in by_records)))

    def _between_records(self, offset: Column) -> tuple[Column, Column, Column]:
        place = 2 * (self.records.leading(np.less_equal, offset, stride=2) - 1)
        first, since, last, until = (self.records.item(np.where(place < 0, -1, place + it))
                                     for it in range(4))  # fmt: skip
        is_told = until >= since
        since, until = since.where(is_told), until.where(is_told)
        return _on_line(offset, (since, first), (until, last)), since, until


def _on_line(offset: Column, older: tuple[Column, Column], newer: tuple[Column, Column]) -> Column:
    """The time of an offset on the straight line between two (time, offset)."""
    pace = (newer[0] - older[0]) / (newer[1] - older[1])
    return older[0] + ((offset - older[1]) * pace).whole()
