"""Moves of commits: for how long one stands, how it usually moves, whether it went back. Pure."""

from typing import Final, NamedTuple

from spark_metrics.figures.column import Column, greatest, where

PACE_KEPT: Final = 0.9
"""A pace that gets shorter is forgotten by this share a move."""


class Moves(NamedTuple):
    """Memory of a commit's moves; times in milliseconds."""

    still_since_ms: Column
    """Since when it stands there, with records waiting or beyond the end."""
    moved_ms: Column
    pace_ms: Column
    """How long it takes between moves."""
    rewind_from: Column
    """From where it went back, until it comes there again."""
    rewind_ms: Column


def moves(
    before: Moves,
    *,
    read_ms: Column,
    offset: Column,
    old_offset: Column,
    end_offset: Column,
    lag: Column,
    is_back: Column,
    is_on: Column,
) -> Moves:
    """After a reading. ``is_back``, ``is_on``: the commit went back with it, or on."""
    stands = (lag > 0) | (offset > end_offset)
    since_ms = where(old_offset.equals(offset), before.still_since_ms.or_else(read_ms), read_ms)
    took_ms = read_ms - before.moved_ms.or_else(before.still_since_ms)
    shorter_ms = (before.pace_ms * PACE_KEPT).whole()
    is_pace = is_on & before.still_since_ms.is_known
    has_come = offset >= before.rewind_from
    return Moves(
        still_since_ms=since_ms.where(stands),
        moved_ms=where(is_on, read_ms, before.moved_ms),
        pace_ms=where(is_pace, greatest(took_ms, shorter_ms), before.pace_ms),
        rewind_from=where(
            is_back,
            greatest(before.rewind_from, old_offset),
            where(has_come, None, before.rewind_from),
        ),
        rewind_ms=where(is_back, read_ms, before.rewind_ms),
    )
