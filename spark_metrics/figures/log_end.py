"""Memory of a log over time: points of its end, fewer into the past, and its starts. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from spark_metrics.figures.column import Column, where
from spark_metrics.figures.lists import Lists
from spark_metrics.schema import POINTS_KEPT, POINTS_MAX, STARTS_MAX

_SHARP_MS: Final = 2_000
"""Added to the age of a point: of the newest ones each is as good as the other."""
_DISTANCE: Final = 1 / 16
"""How much the distance of two points counts beside what the line between them errs."""


class Points(NamedTuple):
    """The points of each row (``schema.POINT``), newest first."""

    counts: Any
    ms: Any
    offset: Any
    error_ms: Any


def with_newest(
    before: Mapping[str, Lists], *, now_ms: Column, end: Column, is_new: Column
) -> Points:
    """The points after a reading of the end; a log that was begun anew begins its points anew.

    Every reading is a point until there are as many as can be. Then those go that tell least.
    """
    newest_ms, newest = before["ms"].item(0), before["offset"].item(0)
    goes_on = ((now_ms > newest_ms) & (end >= newest)) | newest_ms.is_unknown
    adds = (is_new & now_ms.is_known & goes_on).is_sure
    begins = (~adds & (end < newest)).is_sure
    lists = before["ms"]
    counts = np.where(begins.numpy(), 0, lists.counts)
    places, counts = _in_front((adds | begins).numpy(), lists.starts, counts, len(lists.items))
    now = {"ms": now_ms, "offset": end, "error_ms": where(begins, None, now_ms - newest_ms)}
    columns = [
        pa.concat_arrays([before[it].items, now[it].values]).take(pa.array(places)) for it in now
    ]
    thins = adds.numpy() & (counts > POINTS_MAX)
    if not thins.any():
        return Points(counts, *columns)
    errors = columns[2].to_numpy(zero_copy_only=False).copy()
    ms, offset = (it.to_numpy(zero_copy_only=False) for it in columns[:2])
    at = _kept(ms, offset, errors, _starts(counts)[thins])
    columns[2] = pa.array(errors, pa.int64(), from_pandas=True)
    keeps = ~np.repeat(thins, counts)
    keeps[at] = True
    counts = np.where(thins, POINTS_KEPT, counts)
    return Points(counts, *(it.filter(pa.array(keeps)) for it in columns))


def _in_front(adds: Any, starts: Any, counts: Any, items: int) -> tuple[Any, Any]:
    """Places of each row's items, behind one that is its own where it ``adds`` one."""
    grown = counts + adds
    begins = _starts(grown)
    places = np.repeat(starts - begins - adds, grown) + np.arange(int(grown.sum()))
    places[begins[adds]] = items + np.flatnonzero(adds)
    return places, grown


def _kept(ms: Any, offset: Any, errors: Any, begins: Any) -> Any:
    """Places of the points that stay of the rows that begin there and have one too many.

    One after the other goes that costs least; ``errors`` become those of the lines that are left.
    """
    at = begins[:, None] + np.arange(POINTS_MAX + 1)
    of = ms[at], offset[at], errors[at]
    rows, places = np.arange(len(at)), np.broadcast_to(np.arange(POINTS_MAX + 1), at.shape)
    newer, older, inner = places - 1, places + 1, places[:, 1:-1]
    cost, errs_ms = np.full(at.shape, np.inf), np.full(at.shape, np.inf)
    every = rows[:, None], inner - 1, inner, inner + 1
    cost[:, 1:-1], errs_ms[:, 1:-1] = _cost(of, *every)
    stays = np.ones(at.shape, bool)
    for _ in range(POINTS_MAX + 1 - POINTS_KEPT):
        goes = np.argmin(cost, axis=1)
        before, behind = newer[rows, goes], older[rows, goes]
        of[2][rows, before] = errs_ms[rows, goes]
        stays[rows, goes], cost[rows, goes] = False, np.inf
        older[rows, before], newer[rows, behind] = behind, before
        for neighbour in (before, behind):
            some = np.flatnonzero((neighbour > 0) & (neighbour < POINTS_MAX))
            here = neighbour[some]
            costs = _cost(of, some, newer[some, here], here, older[some, here])
            cost[some, here], errs_ms[some, here] = costs
    errors[at] = of[2]
    return at[stays]


def _cost(
    of: tuple[Any, Any, Any], rows: Any, newer: Any, here: Any, older: Any
) -> tuple[Any, Any]:
    """Costs of these points, as a share of their age, and how far the line past each may err.

    ``of``: times, offsets and errors of all points; the others are places there.

    The line between two neighbours errs as much as those before, and by how far it passes the
    point; where the log stood, no line is needed. Their distance counts a little, too: a line
    between close points is sure.
    """
    ms, offset, errors = of
    until, at, since = ms[rows, newer], ms[rows, here], ms[rows, older]
    last, mid, first = offset[rows, newer], offset[rows, here], offset[rows, older]
    rises, to_here = (last - first).astype(np.float64), (mid - first).astype(np.float64)
    lines = (
        (errors[rows, newer], last == mid, until - at),
        (errors[rows, here], mid == first, at - since),
    )
    errs_before_ms = [
        np.where(stood, 0.0, np.where(np.isnan(err), span_ms, err)) for err, stood, span_ms in lines
    ]
    line = since + to_here / np.maximum(rises, 1.0) * (until - since)
    past_ms = np.where(rises == 0, 0.0, np.abs(line - at))
    errs_ms = np.ceil(np.maximum(*errs_before_ms) + past_ms)
    age_ms = ms[rows, 0] - at + _SHARP_MS
    return (errs_ms + _DISTANCE * (until - since)) / age_ms, errs_ms


def _starts(counts: Any) -> Any:
    return np.cumsum(counts) - counts


class Starts(NamedTuple):
    """Where the log of each row began (``schema.START``), newest first."""

    counts: Any
    ms: Any
    offset: Any
    end: Any


def with_start(
    before: Mapping[str, Lists], *, now_ms: Column, start: Column, end: Column, is_new: Column
) -> Starts:
    """The starts after a reading; a log that was begun anew begins them anew.

    ``end``: where the log ended; unknown where age may have moved its start.
    """
    newest = before["offset"].item(0)
    begins = (start < newest).is_sure
    adds = (is_new & now_ms.is_known & (newest.is_unknown | (start > newest))).is_sure | begins
    counts = np.where(begins.numpy(), 0, np.minimum(before["ms"].counts, STARTS_MAX - 1))
    counts = np.where(adds.numpy(), counts, before["ms"].counts)
    lists = before["ms"]
    places, counts = _in_front(adds.numpy(), lists.starts, counts, len(lists.items))
    now = {"ms": now_ms, "offset": start, "end": end}
    return Starts(
        counts,
        *(
            pa.concat_arrays([before[it].items, now[it].values]).take(pa.array(places))
            for it in now
        ),
    )
