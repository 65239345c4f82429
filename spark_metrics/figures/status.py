"""A verdict of a group in a partition, in Burrow's words. Pure."""

from typing import Final, NamedTuple

from spark_metrics.figures.column import Column, first_of, greatest, where
from spark_metrics.figures.speed import DEAD_BAND_RECORDS_PER_S, TREND_WINDOW_MS
from spark_metrics.figures.standing import (
    PATIENCE_MS,
    UNKNOWN_PACE_PATIENCE_MS,
    Moves,
    patience,
)

STILL_MS: Final = 10_000
"""A group stands still when it has not committed further for so long, with records waiting."""
OWNED_PATIENCE_MS: Final = 60_000
"""A member that owns the partition is given so long before it counts as stopped."""
ALIVE_PATIENCE_MS: Final = 300_000
"""… and so long while its group commits other partitions: it may work through them in turn."""
REPEAT_MS: Final = 1_000
"""A commit so long after the offset last moved is the same one again: the group is alive."""
BEYOND_MS: Final = 3_000
"""A commit stands beyond the log's end for so long before that is said: a leader that has just
been elected may still be learning its high watermark."""


class Trend(NamedTuple):
    """How lag changed over the window of trends, and how much of it is known."""

    per_s: Column
    span_ms: Column


class Judged(NamedTuple):
    """Figures that the verdict of a commit rests on."""

    committed_offset: Column
    end_offset: Column
    log_start_offset: Column
    lag: Column
    lag_per_s: Column
    read_ms: Column
    commit_ms: Column
    first_ms: Column
    """The first paired reading."""
    moves: Moves
    trend: Trend
    is_owned: Column
    alive_ms: Column
    """When its group last committed anything, as far as known."""


def standing(of: Judged) -> Column:
    """Milliseconds for which it has stood where it is, with records waiting."""
    return where(of.lag > 0, of.read_ms - of.moves.still_since_ms, 0)


def reads_no_more(of: Judged) -> Column:
    """Whether it stands for a minute and for longer than it ever does, with records waiting."""
    return (standing(of) >= patience(UNKNOWN_PACE_PATIENCE_MS, of.moves.pace_ms)).is_sure


def stuck_since(of: Judged) -> Column:
    """When it came to stand still; unknown where it moves."""
    return of.moves.still_since_ms.where(standing(of) >= STILL_MS)


def status(of: Judged) -> Column:
    """The first word that applies; unknown where there is no verdict."""
    moves, stands_ms = of.moves, standing(of)
    patience_ms = patience(PATIENCE_MS, moves.pace_ms)
    stands = stands_ms >= patience_ms
    stands_long = stands_ms >= greatest(patience_ms, OWNED_PATIENCE_MS)
    stands_for_ever = stands_ms >= greatest(patience_ms, ALIVE_PATIENCE_MS)
    is_silent = of.alive_ms.is_unknown | (of.alive_ms < of.read_ms - OWNED_PATIENCE_MS)
    went_back = moves.rewind_from.is_known & (of.read_ms - moves.rewind_ms <= TREND_WINDOW_MS)
    is_again = of.commit_ms > moves.still_since_ms + REPEAT_MS
    is_sure = moves.pace_ms.is_known | is_again | (stands_ms >= UNKNOWN_PACE_PATIENCE_MS)
    grows = (of.trend.per_s > DEAD_BAND_RECORDS_PER_S) & (of.trend.span_ms >= STILL_MS)
    shrinks_now = (of.lag_per_s < -DEAD_BAND_RECORDS_PER_S).is_sure
    empty = first_of((of.end_offset <= of.log_start_offset, "OK"))
    return first_of(
        (of.committed_offset.is_unknown, empty),
        (of.lag.is_unknown, None),
        (of.committed_offset > of.end_offset, _beyond(of)),
        (of.lag.equals(0), "OK"),
        (of.read_ms.equals(of.first_ms), None),
        (went_back, "REWIND"),
        (stands & is_sure & ~of.is_owned, "STOP"),
        (stands & is_again, "STALL"),
        (stands_long & is_silent & of.commit_ms.is_unknown, "STALL"),
        (stands_long & is_silent, "STOP"),
        (stands_for_ever, "STALL"),
        (grows & ~shrinks_now, "WARN"),
        otherwise="OK",
    )


def _beyond(of: Judged) -> Column:
    """The verdict of a commit beyond the end of the log."""
    return first_of(
        (of.read_ms - of.moves.still_since_ms >= BEYOND_MS, "BEYOND"),
        (of.moves.moved_ms.equals(of.read_ms), "OK"),
    )
