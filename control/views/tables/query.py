"""Pages of the tables: filter, sort and cut over Arrow columns, then rows for what is left.

Filter and sort make row numbers, not tables: of 133,000 partitions only the hundred rows of a page
are ever gathered. Sorting is stable and by value, never by text; unknown values come last in both
directions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control.views.tables import column as columns
from control.views.tables import row_builders
from control.views.tables.column import Column, ColumnError, chosen
from control.views.tables.filters import FieldKind, FilterError, FilterField, filter_mask
from control.views.tables.rows import Row

LIMIT_MAX: Final = 1_000
"""No screen shows more rows at once; a larger limit is cut down to this."""

R = TypeVar("R", bound=Row, covariant=True)

Order = npt.NDArray[np.int64] | None
"""Row numbers of a table; None: all of them, in its own order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """Query of a table. ``sort`` is a column's id, with ``-`` in front for descending."""

    filter: str = ""
    sort: str = ""
    offset: int = 0
    limit: int = 100
    columns: str = ""
    """Ids of the wanted columns, in order, between commas; empty: all of the table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[R]):
    """One page of rows, and what it was cut from."""

    rows: tuple[R, ...]
    columns: tuple[Column, ...]
    total: int
    """Rows of the whole table."""
    matching: int
    """Rows that pass the filter."""
    offset: int = 0
    problem: str = ""
    """Why filter, sort or columns could not be followed; the rows are then empty."""
    table: pa.Table | None = field(default=None, compare=False, repr=False)
    """What it was cut from, as ``spec`` reads it; None with a problem."""
    order: Order = field(default=None, compare=False, repr=False)
    spec: "TableSpec[Any] | None" = field(default=None, compare=False, repr=False)

    @property
    def found(self) -> pa.Table | None:
        """All rows that pass the filter, sorted; None with a problem."""
        return None if self.table is None else _taken(self.table, self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec(Generic[R]):
    """How one kind of table is filtered, sorted and shown."""

    columns: tuple[Column, ...]
    name_column: str
    fields: Mapping[str, FilterField]
    sorts: Mapping[str, str]
    """Column of the table that a column of the screen is sorted by."""
    build: Callable[[Mapping[str, Any]], R]
    exports: Mapping[str, str] = field(default_factory=dict)
    """Column of the table that a column of the screen is exported from, where it is not the one
    that it is sorted by."""


def page_of(
    table: pa.Table,
    spec: TableSpec[R],
    query: TableQuery,
    *,
    known: Callable[[Callable[[], Order]], Order] = lambda find: find(),
) -> Page[R]:
    """The wanted page. What cannot be followed of the query is told in ``problem``.

    ``known`` may have the order of these very rows by this filter and sort already.
    """
    empty: Page[R] = Page(
        rows=(), columns=spec.columns, total=table.num_rows, matching=0, offset=query.offset
    )
    try:
        shown = chosen(spec.columns, query.columns)
        order = known(lambda: order_of(table, spec, query))
    except (FilterError, ColumnError) as error:
        return replace(empty, problem=str(error))
    limit, start = min(max(query.limit, 0), LIMIT_MAX), max(query.offset, 0)
    if order is None:
        matching_count, cut = table.num_rows, table.slice(start, limit)
    else:
        matching_count, cut = len(order), table.take(order[start : start + limit])
    rows = tuple(spec.build(record) for record in cut.to_pylist())
    return replace(
        empty,
        rows=rows,
        columns=shown,
        matching=matching_count,
        table=table,
        order=order,
        spec=spec,
    )


def matching(table: pa.Table, spec: TableSpec[R], query: TableQuery) -> pa.Table:
    """All rows that pass the filter, sorted.

    Raises:
        FilterError: a filter or sort that cannot be followed.
    """
    return _taken(table, order_of(table, spec, query))


def order_of(table: pa.Table, spec: TableSpec[R], query: TableQuery) -> Order:
    """Numbers of the rows that pass the filter, sorted.

    Raises:
        FilterError: a filter or sort that cannot be followed.
    """
    rows: Order = None
    if query.filter.strip():
        mask = filter_mask(table, query.filter, spec.fields, name_column=spec.name_column)
        rows = np.flatnonzero(mask)
    if not query.sort:
        return rows
    name = query.sort.removeprefix("-")
    if name not in spec.sorts:
        raise FilterError(f"no column {name!r} to sort by; there are {', '.join(spec.sorts)}")
    column = table[spec.sorts[name]]
    column = column if rows is None else column.take(rows)
    sorted_rows = np.asarray(_order(column, descending=query.sort.startswith("-")))
    return sorted_rows if rows is None else rows[sorted_rows]


def _taken(table: pa.Table, order: Order) -> pa.Table:
    return table if order is None else table.take(order)


def _order(column: pa.ChunkedArray, *, descending: bool) -> pa.Array:
    """Row numbers in order; ties keep the table's own order, nulls come last."""
    way = "descending" if descending else "ascending"
    values = pa.table({"value": column, "row": pa.array(np.arange(len(column)))})
    keys = [("value", way, "at_end"), ("row", "ascending", "at_end")]
    return pc.sort_indices(values, sort_keys=keys)


def _text(column: str) -> FilterField:
    return FilterField(column, FieldKind.TEXT)


def _number(column: str) -> FilterField:
    return FilterField(column, FieldKind.NUMBER)


def _ids(column: str) -> FilterField:
    return FilterField(column, FieldKind.IDS)


def _duration(column: str) -> FilterField:
    return FilterField(column, FieldKind.DURATION)


_STATUS: Final = FilterField("statuses", FieldKind.WORDS)

PARTITIONS: Final = TableSpec(
    columns=columns.PARTITION_COLUMNS,
    name_column="name",
    fields={
        "topic": _text("topic"),
        "partition": _number("partition"),
        "broker": _ids("replicas"),
        "replica": _ids("replicas"),
        "isr": _ids("isr"),
        "short": _duration("isr_short_ms"),
        "leader": _number("leader"),
        "status": _STATUS,
        "lag": _number("lag"),
        "size": _number("size_bytes"),
        "bytes": _number("size_bytes"),
        "records": _number("records"),
        "segments": _number("segments"),
        "in": _number("in_bytes_per_s"),
        "out": _number("out_bytes_per_s"),
        "rate": _number("in_records_per_s"),
        "groups": _number("groups"),
        "start": _number("log_start_offset"),
        "end": _number("high_watermark"),
    },
    sorts={
        "topic": "topic",
        "partition": "partition",
        "status": "judged_rank",
        "leader": "led_by",
        "replicas": "replica_count",
        "isr": "isr_count",
        "size_bytes": "size_bytes",
        "records": "records",
        "segments": "segments",
        "in_records": "in_records_per_s",
        "in_bytes": "in_bytes_per_s",
        "out_bytes": "out_bytes_per_s",
        "lag": "lag",
        "log_start_offset": "log_start_offset",
        "high_watermark": "high_watermark",
        "age": "age_ms",
    },
    build=row_builders.partition_row,
    exports={"status": "status", "leader": "leader", "replicas": "replicas", "isr": "isr"},
)
TOPICS: Final = TableSpec(
    columns=columns.TOPIC_COLUMNS,
    name_column="topic",
    fields={
        "topic": _text("topic"),
        "status": _STATUS,
        "partitions": _number("partition_count"),
        "size": _number("all_bytes_sum"),
        "bytes": _number("all_bytes_sum"),
        "in": _number("in_bytes_per_s_sum"),
        "out": _number("out_bytes_per_s_sum"),
        "rate": _number("in_records_per_s_sum"),
        "lag": _number("lag_max"),
    },
    sorts={
        "topic": "topic",
        "status": "judged_rank",
        "partitions": "partition_count",
        "replicas": "replicas_count_max",
        "size_bytes": "all_bytes_sum",
        "in_records": "in_records_per_s_sum",
        "in_bytes": "in_bytes_per_s_sum",
        "out_bytes": "out_bytes_per_s_sum",
        "lag": "lag_max",
    },
    build=row_builders.topic_row,
    exports={"status": "status"},
)
GROUPS: Final = TableSpec(
    columns=columns.GROUP_COLUMNS,
    name_column="group_id",
    fields={
        "group": _text("group_id"),
        "topic": _text("topics"),
        "status": _STATUS,
        "state": _text("state"),
        "type": _text("group_type"),
        "assignor": _text("protocol"),
        "lag": _number("lag_sum"),
        "members": _number("members"),
        "partitions": _number("partition_count"),
        "clears": _duration("clears_ms"),
        "loses": _duration("retention_risk_ms_min"),
        "time": _duration("lag_ms_max"),
        "trend": _number("trend_per_s"),
        "consumes": _number("consumed_records_per_s_sum"),
    },
    sorts={
        "group": "group_id",
        "status": "judged_rank",
        "lag": "lag_sum",
        "lag_time": "lag_ms_max",
        "velocity": "trend_per_s",
        "clears": "clears_ms",
        "loses": "retention_risk_ms_min",
        "consumed": "consumed_records_per_s_sum",
        "members": "members",
        "partitions": "partition_count",
        "topics": "topics",
        "type": "group_type",
        "state": "state",
        "epoch": "group_epoch",
        "assignor": "protocol",
        "rests_on": "rests_on",
        "status_unknown_because": "unjudged",
    },
    build=row_builders.group_row,
    exports={"status": "verdict"},
)
GROUP_PARTITIONS: Final = TableSpec(
    columns=columns.GROUP_PARTITION_COLUMNS,
    name_column="name",
    fields={
        "group": _text("group_id"),
        "topic": _text("topic"),
        "partition": _number("partition"),
        "status": _STATUS,
        "lag": _number("lag"),
        "leader": _number("leader"),
        "broker": _number("leader"),
        "member": _text("member_id"),
        "clears": _duration("clears_ms"),
        "loses": _duration("retention_risk_ms"),
        "time": _duration("lag_ms"),
        "trend": _number("lag_records_per_s"),
        "consumes": _number("consumed_records_per_s"),
        "stuck": _duration("stuck_ms"),
        "readable": _number("readable"),
    },
    sorts={
        "group": "group_id",
        "topic": "topic",
        "partition": "partition",
        "status": "judged_rank",
        "lag": "lag",
        "readable": "readable",
        "lag_time": "lag_ms",
        "velocity": "lag_records_per_s",
        "clears": "clears_ms",
        "loses": "retention_risk_ms",
        "committed": "committed_offset",
        "end": "end_offset",
        "consumed": "consumed_records_per_s",
        "stuck": "stuck_ms",
        "leader": "led_by",
        "member": "member_id",
        "status_unknown_because": "unjudged",
    },
    build=row_builders.group_partition_row,
    exports={"status": "verdict", "leader": "leader"},
)
BROKERS: Final = TableSpec(
    columns=columns.BROKER_COLUMNS,
    name_column="name",
    fields={
        "broker": _number("broker"),
        "rack": _text("rack"),
        "replicas": _number("replicas"),
        "leaders": _number("leaders"),
        "size": _number("size_bytes"),
        "bytes": _number("size_bytes"),
        "skew": _number("skew_percent"),
        "disk": _number("disk_percent"),
        "full": _duration("full_ms"),
        "in": _number("in_bytes_per_s"),
        "out": _number("out_bytes_per_s"),
        "status": _text("status"),
    },
    sorts={
        "broker": "broker",
        "rack": "rack",
        "status": "status_rank",
        "replicas": "replicas",
        "leaders": "leaders",
        "size_bytes": "size_bytes",
        "in_bytes": "in_bytes_per_s",
        "out_bytes": "out_bytes_per_s",
        "skew": "skew_percent",
        "full_in": "full_ms",
        "disk": "disk_percent",
        "age": "age_ms",
    },
    build=row_builders.broker_row,
    exports={"status": "status"},
)
