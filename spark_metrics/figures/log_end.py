"""Memory of a log over time: points of its end, ever sparser, and of its start. Pure."""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from spark_metrics.figures.column import Column, where
from spark_metrics.figures.lists import Lists
from spark_metrics.schema import POINTS_KEPT, POINTS_MAX

START_WINDOW_MS: Final = 60_000
"""How fast the log start moves is taken over at least half of this."""


class Points(NamedTuple):
    """A list of (time, end offset) for each row, newest first."""

    counts: Any
    ms: Any
    offset: Any


def with_newest(ms: Lists, offset: Lists, *, now_ms: Column, end: Column, is_new: Column) -> Points:
    """The points after a reading of the end; a log that was begun anew begins its points anew.

    Every reading is a point until there are as many as can be. Then they are thinned: the older a
    point, the longer the time that it stands for.
    """
    newest_ms, newest = ms.item(0), offset.item(0)
    goes_on = ((now_ms > newest_ms) & (end >= newest)) | newest_ms.is_unknown
    adds = (is_new & now_ms.is_known & goes_on).is_sure
    begins = (~adds & (end < newest)).is_sure
    counts = np.where(begins.numpy(), 0, ms.counts)
    places, counts = _in_front((adds | begins).numpy(), ms.starts, counts, len(ms.items))
    told = [
        pa.concat_arrays([old.items, now.values]).take(pa.array(places))
        for old, now in ((ms, now_ms), (offset, end))
    ]
    thins = adds.numpy() & (counts > POINTS_MAX)
    if not thins.any():
        return Points(counts, *told)
    keeps = _kept(told[0].to_numpy(zero_copy_only=False), counts, thins)
    counts = np.add.reduceat(np.append(keeps, False).astype(np.int64), _starts(counts)) * (
        counts > 0
    )
    return Points(counts, *(it.filter(pa.array(keeps)) for it in told))


def _in_front(adds: Any, starts: Any, counts: Any, items: int) -> tuple[Any, Any]:
    """Places of each row's items, behind one that is its own where it ``adds`` one."""
    grown = counts + adds
    begins = _starts(grown)
    places = np.repeat(starts - begins - adds, grown) + np.arange(int(grown.sum()))
    places[begins[adds]] = items + np.flatnonzero(adds)
    return places, grown


def _kept(ms: Any, counts: Any, thins: Any) -> Any:
    """Which points stay: of each cell only the oldest.

    A cell has 2^n milliseconds, a quarter to half of a point's age.
    """
    begins = _starts(counts)
    at = np.flatnonzero(np.repeat(thins, counts))
    ranks = np.arange(len(ms)) - np.repeat(begins, counts)
    is_end = ranks[at] == np.repeat(counts, counts)[at] - 1
    age_ms = np.repeat(ms[np.minimum(begins, len(ms) - 1)], counts)[at] - ms[at]
    cell = 1 << np.log2(np.maximum(age_ms / 2, 1)).astype(np.int64)
    older = ms[np.minimum(at + 1, len(ms) - 1)]
    keeps = np.ones(len(ms), bool)
    keeps[at] = (ranks[at] == 0) | is_end | (ms[at] // cell != older // cell)
    passed = np.cumsum(keeps)
    before = passed[begins.clip(max=len(ms) - 1)] - keeps[begins.clip(max=len(ms) - 1)]
    rank = passed - np.repeat(before, counts)
    keeps[at] &= rank[at] <= POINTS_KEPT
    return keeps


def _starts(counts: Any) -> Any:
    return np.cumsum(counts) - counts


class Start(NamedTuple):
    """Where a log began, and when."""

    ms: Column
    offset: Column


def starts(earlier: Start, later: Start, now: Start) -> tuple[Start, Start]:
    """Two starts of the log, between which it is known how fast it moves."""
    begins = (later.ms.is_unknown | (now.offset < later.offset)).is_sure
    rolls = (now.ms - later.ms >= START_WINDOW_MS // 2).is_sure
    before = _chosen(rolls, later, earlier)
    return _chosen(begins, now, before), _chosen(begins | rolls, now, later)


def _chosen(condition: Column, then: Start, otherwise: Start) -> Start:
    return Start(
        ms=where(condition, then.ms, otherwise.ms),
        offset=where(condition, then.offset, otherwise.offset),
    )
