"""History for charts: times and values side by side, at most so many points.

The store's reader has the history; what it answers is cut here into series with a name and a
unit. A gap in time stays a gap: charts break the line there instead of drawing across it. Where a
point stands for many readings its value is their mean (or the newest) and ``high`` the greatest,
so that a peak of a second is still seen in a chart of a month.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import FloatColumn, IntColumn, floats, ints
from control.model.ids import TopicPartition
from control.views.snapshots.store import StoreReader

POINTS_MAX: Final = 300
SERIES_MAX: Final = 12
"""More lines than this in one chart cannot be told apart; the largest are taken."""
GAP_INTERVALS: Final = 3
YOUNG_SHARE: Final = 0.25
"""Where figures begin later than after this share of a chart's stretch, the chart begins with
them."""
STRETCH_MS_MIN: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when to when, milliseconds since the epoch, both ends included."""

    since_ms: int
    until_ms: int

    @classmethod
    def last(cls, duration_ms: int, *, now_ms: int) -> "Span":
        return cls(since_ms=now_ms - duration_ms, until_ms=now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line: ``values`` (None where unknown or in a gap) at ``at_ms``, increasing."""

    name: str
    unit: str
    """``bytes/s``, ``records/s``, ``records``, ``bytes``, ``ms`` or empty for plain counts."""
    at_ms: Sequence[int]
    values: Sequence[float | None]
    high: Sequence[float | None] = ()
    """The greatest reading of each point; empty where that is not kept."""

    @property
    def newest(self) -> float | None:
        """The value of the newest point; None: unknown then, whatever was known before."""
        return self.values[-1] if self.values else None

    @property
    def last(self) -> float | None:
        known = [value for value in self.values if value is not None]
        return known[-1] if known else None

    @property
    def peaks(self) -> Sequence[float | None]:
        """One figure per point, for charts without room for more."""
        return self.high or self.values


def cluster_throughput(reader: StoreReader, cluster: str, span: Span) -> tuple[Series, ...]:
    """Bytes in and out of all partitions."""
    table = reader.cluster_history(
        cluster=cluster,
        since_ms=span.since_ms,
        until_ms=span.until_ms,
        points_max=POINTS_MAX,
        columns=_names(_THROUGHPUT),
    )
    return _columns(table, _THROUGHPUT)


def topic_throughput(
    reader: StoreReader, cluster: str, topic: str, span: Span
) -> tuple[Series, ...]:
    """Bytes and records of all partitions of a topic."""
    table = reader.topic_history(
        cluster=cluster,
        topic=topic,
        since_ms=span.since_ms,
        until_ms=span.until_ms,
        points_max=POINTS_MAX,
        columns=_names(_THROUGHPUT),
    )
    return _columns(table, _THROUGHPUT)


def partition_series(
    reader: StoreReader, cluster: str, name: TopicPartition, span: Span
) -> tuple[Series, ...]:
    """Throughput in and out, records in, size and replicas in sync of one partition."""
    wanted = {**_THROUGHPUT, **_PARTITION}
    table = reader.partition_history(
        cluster=cluster,
        topic=name.topic,
        partition=name.partition,
        since_ms=span.since_ms,
        until_ms=span.until_ms,
        points_max=POINTS_MAX,
        columns=_names(wanted),
    )
    return _columns(table, wanted)


def group_lag(
    reader: StoreReader,
    cluster: str,
    group: str,
    span: Span,
    *,
    only: TopicPartition | None = None,
) -> tuple[Series, ...]:
    """Lag of each partition of a group, the largest ``SERIES_MAX`` by their newest lag."""
    table = reader.commit_history(
        cluster=cluster,
        group_id=group,
        topic=only.topic if only else None,
        partition=only.partition if only else None,
        since_ms=span.since_ms,
        until_ms=span.until_ms,
        points_max=POINTS_MAX,
        columns=["lag"],
    )
    names = pc.binary_join_element_wise(
        table["topic"], pc.cast(table["partition"], pa.string()), "-"
    )
    found = [
        _series(name, "records", table.filter(pc.equal(names, name)), "lag")
        for name in pc.unique(names).to_pylist()
    ]
    return tuple(sorted(found, key=lambda item: -(item.last or 0.0))[:SERIES_MAX])


def total_lag(reader: StoreReader, cluster: str, group: str, span: Span) -> Series:
    """Lag of a whole group: the sum over its partitions at each time."""
    table = reader.group_history(
        cluster=cluster,
        group_id=group,
        since_ms=span.since_ms,
        until_ms=span.until_ms,
        points_max=POINTS_MAX,
        columns=["lag"],
    )
    return _series(group, "records", table, "lag")


def job_series(reader: StoreReader, span: Span) -> tuple[Series, ...]:
    """The metrics job: duration of its batches, delay, what it took in, what it remembers."""
    table = reader.job_history(
        since_ms=span.since_ms, until_ms=span.until_ms, points_max=POINTS_MAX
    )
    return _columns(table, _JOB)


_THROUGHPUT: Final = {
    "in": ("in_bytes_per_s", "bytes/s"),
    "out": ("out_bytes_per_s", "bytes/s"),
    "records in": ("in_records_per_s", "records/s"),
}
_PARTITION: Final = {
    "size": ("size_bytes", "bytes"),
    "segments": ("segments", ""),
    "in sync": ("isr_count", ""),
    "high watermark": ("high_watermark", "records"),
}
_JOB: Final = {
    "batch time": ("batch_ms", "ms"),
    "delay": ("delay_ms", "ms"),
    "samples in": ("records_per_s", "records/s"),
    "state rows": ("state_rows", ""),
}


def _names(wanted: dict[str, tuple[str, str]]) -> list[str]:
    """Columns of the store."""
    return [column for column, _ in wanted.values()]


def _columns(table: pa.Table, wanted: dict[str, tuple[str, str]]) -> tuple[Series, ...]:
    return tuple(_series(name, unit, table, column) for name, (column, unit) in wanted.items())


def _series(name: str, unit: str, table: pa.Table, column: str) -> Series:
    at_ms = ints(table["at_ms"])
    at, values = with_gaps(at_ms, floats(table[column]))
    high: Sequence[float | None] = ()
    if f"{column}_max" in table.column_names:
        high = _nones(with_gaps(at_ms, floats(table[f"{column}_max"]))[1])
    return Series(name=name, unit=unit, at_ms=at.tolist(), values=_nones(values), high=high)


def with_gaps(at_ms: IntColumn, values: FloatColumn) -> tuple[IntColumn, FloatColumn]:
    """Put an unknown value into every pause of more than ``GAP_INTERVALS`` usual steps."""
    if len(at_ms) < 3:
        return at_ms, values
    steps = np.diff(at_ms)
    usual = float(np.median(steps))
    pauses = np.flatnonzero(steps > GAP_INTERVALS * usual) + 1
    return (
        np.insert(at_ms, pauses, at_ms[pauses - 1] + 1),
        np.insert(values, pauses, np.nan),
    )


def _nones(values: FloatColumn) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def known_stretch(lines: Sequence[Series], span: Span) -> Span:
    """The stretch that a chart shows: all of it, or from a young cluster's first figures on.

    Of ten minutes with figures of the last three, three; with figures of the last nine, ten.
    """
    firsts = [
        next(at for at, value in zip(line.at_ms, line.values, strict=True) if value is not None)
        for line in lines
        if line.last is not None
    ]
    first_ms = min(firsts, default=span.since_ms)
    if first_ms - span.since_ms <= YOUNG_SHARE * (span.until_ms - span.since_ms):
        return span
    since_ms = max(span.since_ms, min(first_ms, span.until_ms - STRETCH_MS_MIN))
    return replace(span, since_ms=since_ms)


def named(series: Series, name: str) -> Series:
    """The same line by another name."""
    return replace(series, name=name)


def broker_throughput(
    reader: StoreReader, cluster: str, broker: int, span: Span
) -> tuple[Series, ...]:
    """Bytes and records of the partitions that the broker led at each time."""
    table = reader.broker_history(
        cluster=cluster,
        broker=broker,
        since_ms=span.since_ms,
        until_ms=span.until_ms,
        points_max=POINTS_MAX,
        columns=_names(_THROUGHPUT),
    )
    return _columns(table, _THROUGHPUT)
