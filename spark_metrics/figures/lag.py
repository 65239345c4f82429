"""Lag of a group in a partition, what of it is lost, and its age. Pure."""

from spark_metrics.figures.column import Column, greatest, least


def lag(end_offset: Column, committed_offset: Column) -> Column:
    """Records between the commit and the end of the log."""
    behind = end_offset - committed_offset
    return greatest(behind, 0).where(behind.is_known)


def lost(log_start_offset: Column, end_offset: Column, committed_offset: Column) -> Column:
    """Records of the lag that are deleted already."""
    gone = least(log_start_offset, end_offset) - committed_offset
    return greatest(gone, 0).where(log_start_offset.is_known & gone.is_known)


def time_lag(end_read_ms: Column, at_ms: Column) -> Column:
    """Age of the commit's place in the log."""
    age = end_read_ms - at_ms
    return greatest(age, 0).where(age.is_known)
