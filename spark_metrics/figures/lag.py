"""Lag of a group in a partition, what of it is lost, and its age. Pure."""

import numpy as np

from spark_metrics.figures.column import Column, column, first_of, greatest, least, where
from spark_metrics.figures.lists import Lists


def lag(end_offset: Column, committed_offset: Column) -> Column:
    """Records between the commit and the end of the log."""
    behind = end_offset - committed_offset
    return greatest(behind, 0).where(behind.is_known)


def lost(log_start_offset: Column, end_offset: Column, committed_offset: Column) -> Column:
    """Records of the lag that are deleted already."""
    gone = least(log_start_offset, end_offset) - committed_offset
    return greatest(gone, 0).where(log_start_offset.is_known & gone.is_known)


def reached_ms(
    committed_offset: Column,
    lag_records: Column,
    *,
    end_read_ms: Column,
    points: tuple[Lists, Lists],
    log_points: Lists,
) -> Column:
    """When the log ended where the commit stands; older than the oldest point is unknown.

    ``points``: times and offsets of the log's end, newest first. ``log_points``: offset and
    timestamp of records by turns, oldest first.
    """
    sought = committed_offset.where(lag_records > 0)
    times, offsets = points
    later = offsets.leading(np.greater, sought)
    is_between = column((later > 0) & (later < offsets.counts)) & sought.is_known
    by_points = between(
        committed_offset,
        newer=(times.item(later - 1), offsets.item(later - 1)),
        older=(times.item(later), offsets.item(later)),
    )
    sought = sought.where(column(later >= offsets.counts))
    place = 2 * (log_points.leading(np.less_equal, sought, stride=2) - 1)
    by_records = between(
        committed_offset,
        newer=(log_points.item(place + 3), log_points.item(place + 2)),
        older=(log_points.item(place + 1), log_points.item(place)),
    )
    return first_of(
        (lag_records.equals(0), end_read_ms),
        (is_between, by_points),
        (column(place >= 0), by_records),
    )


def between(
    offset: Column, *, newer: tuple[Column, Column], older: tuple[Column, Column]
) -> Column:
    """The time of an offset on the straight line between two (time, offset)."""
    pace = (newer[0] - older[0]) / (newer[1] - older[1])
    return older[0] + ((offset - older[1]) * pace).whole()


def time_lag(end_read_ms: Column, at_ms: Column) -> Column:
    """Age of the commit's place in the log."""
    age = end_read_ms - at_ms
    return greatest(age, 0).where(age.is_known)


def retention_risk(
    committed_offset: Column,
    lag_records: Column,
    lost_records: Column,
    *,
    time_lag_ms: Column,
    retention_ms: Column,
    log_start_offset: Column,
    start_per_ms: Column,
) -> Column:
    """Milliseconds until records that the group has not read are deleted; 0: some are."""
    left_ms = retention_ms - time_lag_ms
    by_age = greatest(left_ms, 0).where((retention_ms > 0) & left_ms.is_known)
    by_start = ((committed_offset - log_start_offset) / start_per_ms).whole()
    risk = least(by_age, by_start.where(start_per_ms > 0))
    return where(lost_records > 0, 0, risk).where(lag_records > 0)
