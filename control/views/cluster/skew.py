"""Skew over time: how far each broker's bytes were from the mean of all."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from control.model.columns import floats, ints
from control.views.series import POINTS_MAX, Series, Span, with_gaps
from control.views.snapshots.store import StoreReader
from control.views.tables.rows import Row

LINES_MAX: Final = 8
"""More lines cannot be told apart; those furthest from the mean now are taken."""


def most_skewed(rows: Sequence[Row]) -> tuple[int, ...]:
    """The brokers of the lines, in order of ids."""
    ranked = sorted(rows, key=lambda row: -abs(_number(row.skew.value)))
    return tuple(sorted(int(_number(row.broker.value)) for row in ranked[:LINES_MAX]))


def broker_skew(
    reader: StoreReader, cluster: str, brokers: Sequence[int], count: int, span: Span
) -> tuple[Series, ...]:
    """One line of percents per broker, against the mean of all ``count`` registered brokers.

    Worked example: of three brokers one held 60 of 120 bytes, the mean was 40: +50 %.
    """
    ends: dict[str, Any] = {
        "since_ms": span.since_ms,
        "until_ms": span.until_ms,
        "points_max": POINTS_MAX,
        "columns": ["size_bytes"],
    }
    whole = reader.cluster_history(cluster=cluster, **ends)
    at_ms, total = ints(whole["at_ms"]), floats(whole["size_bytes"])
    found = []
    for broker in brokers:
        own = reader.broker_history(cluster=cluster, broker=broker, **ends)
        if not own.num_rows or not len(at_ms):
            continue
        times, sizes = ints(own["at_ms"]), floats(own["size_bytes"])
        # Points of both are cut at the same times; the newest total before a point is its own.
        place = np.maximum(np.searchsorted(at_ms, times, side="right") - 1, 0)
        mean = total[place] / max(count, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            percent = np.where(mean > 0, (sizes - mean) / mean * 100.0, np.nan)
        shown_at, shown = with_gaps(times, percent)
        values = [None if np.isnan(value) else float(value) for value in shown]
        found.append(Series(name=str(broker), unit="%", at_ms=shown_at.tolist(), values=values))
    return tuple(found)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
