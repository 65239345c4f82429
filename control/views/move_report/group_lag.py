"""Lag of the groups that read what a move moved: before, during and after, beside what stayed.

What history does not have is None, and is told as such: it is never 0.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from control.model.ids import TopicPartition
from control.views.series import Span
from control.views.snapshots.store import StoreReader
from spark_metrics.window.totals import aggregated

GROUPS_MAX: Final = 8
"""Told one by one: those with the most lag at the end of the move."""
POINTS_MAX: Final = 120
"""Of each partition."""
BESIDE_MS_MIN: Final = 60_000
BESIDE_MS_MAX: Final = 900_000
"""How long before and after a move is looked at: as long as it took, within these."""
FIGURES: Final = ("lag", "time_lag_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class LagFigures:
    """Figures of some partitions over some time."""

    mean: float | None
    """Records of a partition."""
    most: int | None
    """Records of the partition that was furthest behind."""
    time_lag_ms: int | None
    """The greatest of any partition."""


NOT_KEPT: Final = LagFigures(mean=None, most=None, time_lag_ms=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Before, during and after a move."""

    before: LagFigures
    during: LagFigures
    after: LagFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """A group that reads what moved."""

    group_id: str
    moved: Lag
    stayed: Lag
    """Partitions that it reads as well, and that did not move."""


def spans_of(started_ms: int, finished_ms: int) -> tuple[Span, Span, Span]:
    """Before, during and after."""
    beside_ms = min(max(finished_ms - started_ms, BESIDE_MS_MIN), BESIDE_MS_MAX)
    return (
        Span(since_ms=started_ms - beside_ms, until_ms=started_ms - 1),
        Span(since_ms=started_ms, until_ms=finished_ms),
        Span(since_ms=finished_ms + 1, until_ms=finished_ms + beside_ms),
    )


def read_group_lags(
    reader: StoreReader, cluster: str, moved: Collection[TopicPartition], spans: Sequence[Span]
) -> tuple[GroupLag, ...] | None:
    """Groups that read what moved, by name; None: no history is kept of the end of the move.

    :raises StoreUnreadableError: there is a store, but it cannot be read.
    """
    then = reader.as_of(cluster=cluster, at_ms=spans[1].until_ms)
    if then is None:
        return None
    groups = _readers(then.tables["commits"], moved)
    return tuple(
        group_lag(
            group,
            reader.commit_history(
                cluster=cluster,
                group_id=group,
                since_ms=spans[0].since_ms,
                until_ms=spans[-1].until_ms,
                points_max=POINTS_MAX,
                columns=FIGURES,
            ),
            moved,
            spans,
        )
        for group in sorted(groups)
    )


def group_lag(
    group_id: str, history: pa.Table, moved: Collection[TopicPartition], spans: Sequence[Span]
) -> GroupLag:
    """Figures of one group from its history of commits. Pure."""
    is_moved = _is_one_of(history, moved)
    return GroupLag(
        group_id=group_id,
        moved=_lag(history.filter(is_moved), spans),
        stayed=_lag(history.filter(pc.invert(is_moved)), spans),
    )


def _readers(commits: pa.Table, moved: Collection[TopicPartition]) -> list[str]:
    """Those with the most lag on what moved."""
    read = commits.filter(_is_one_of(commits, moved))
    lags = aggregated(read, ["group_id"], [("lag", "sum")])
    ordered = lags.sort_by([("lag_sum", "descending"), ("group_id", "ascending")])
    return [str(name) for name in ordered["group_id"].to_pylist()[:GROUPS_MAX]]


def _is_one_of(table: pa.Table, keys: Collection[TopicPartition]) -> Any:
    numbers = pc.cast(table["partition"], pa.string())
    names = pc.binary_join_element_wise(table["topic"], numbers, "-")
    return pc.is_in(names, pa.array([str(key) for key in keys], pa.string()))


def _lag(history: pa.Table, spans: Sequence[Span]) -> Lag:
    before, during, after = (_figures(_within(history, span)) for span in spans)
    return Lag(before=before, during=during, after=after)


def _within(history: pa.Table, span: Span) -> pa.Table:
    at_ms = history["at_ms"]
    since, until = pc.greater_equal(at_ms, span.since_ms), pc.less_equal(at_ms, span.until_ms)
    return history.filter(pc.and_(since, until))


def _figures(history: pa.Table) -> LagFigures:
    if not history.num_rows:
        return NOT_KEPT
    most, time_lag_ms = (
        pc.max(pc.coalesce(history[f"{name}_max"], history[name])).as_py() for name in FIGURES
    )
    return LagFigures(mean=pc.mean(history["lag"]).as_py(), most=most, time_lag_ms=time_lag_ms)
