"""Moves of commits: for how long one stands, how it usually moves, whether it went back. Pure."""

from typing import Final, NamedTuple

from spark_metrics.figures.column import Column, greatest, least, where

PACE_KEPT: Final = 0.9
"""A pace that gets shorter is forgotten by this share a move."""
PATIENCE_MS: Final = 15_000
"""Standing still for less may just be the time between two commits (three auto-commits)."""
UNKNOWN_PACE_PATIENCE_MS: Final = 60_000
"""The same while its pace is unknown."""
PACES: Final = 3
"""Every patience is at least so many times what the group usually takes between two moves."""


class Moves(NamedTuple):
    """Memory of a commit's moves; times in milliseconds."""

    still_since_ms: Column
    """When it came to stand there, with records waiting or beyond the end."""
    moved_ms: Column
    pace_ms: Column
    """How long records wait between moves; unknown until it has moved twice."""
    outage_ms: Column
    """How long they waited once, if that was longer than any patience; forgotten like a pace."""
    rewind_from: Column
    """The offset from which it went back, until it comes there again."""
    rewind_ms: Column


def patience(least_ms: int | Column, pace_ms: Column) -> Column:
    """Milliseconds for which the commit may stand."""
    return greatest(pace_ms.or_else(0) * PACES, least_ms)


def moves(
    before: Moves,
    *,
    read_ms: Column,
    offset: Column,
    old_offset: Column,
    end_offset: Column,
    stands: Column,
    is_back: Column,
    is_on: Column,
) -> Moves:
    """Moves after a reading. ``stands``: records wait, or it is beyond the end. ``is_back``,
    ``is_on``: the commit went back with it, or on. Where the log ends below where it was (it was
    cut off, or begun anew), nothing is read again."""
    since_ms = where(old_offset.equals(offset), before.still_since_ms.or_else(read_ms), read_ms)
    # What it did while there was nothing to read tells nothing of its pace.
    waited_ms = (read_ms - before.still_since_ms).or_else(0)
    usual_ms = patience(PATIENCE_MS, before.pace_ms)
    is_outage = waited_ms > where(before.pace_ms.is_known, usual_ms, UNKNOWN_PACE_PATIENCE_MS)
    # Traffic in bursts waits for one commit, and not for the next one.
    fading_ms = (before.outage_ms * PACE_KEPT).whole()
    fading_ms = fading_ms.where(fading_ms > usual_ms)
    is_again = is_outage & before.outage_ms.is_known
    told_ms = where(is_again, least(waited_ms, before.outage_ms), waited_ms)
    pace_ms = greatest(told_ms, (before.pace_ms * PACE_KEPT).whole())
    is_pace = is_on & before.moved_ms.is_known
    is_back = (is_back & (old_offset <= end_offset)).is_sure
    is_over = (offset >= before.rewind_from) | (before.rewind_from > end_offset)
    return Moves(
        still_since_ms=since_ms.where(stands),
        moved_ms=where(is_on, read_ms, before.moved_ms),
        pace_ms=where(is_pace & (is_again | ~is_outage), pace_ms, before.pace_ms),
        outage_ms=where(is_pace, where(is_outage, waited_ms, fading_ms), before.outage_ms),
        rewind_from=where(
            is_back,
            greatest(before.rewind_from, old_offset),
            where(is_over, None, before.rewind_from),
        ),
        rewind_ms=where(is_back, read_ms, before.rewind_ms),
    )
