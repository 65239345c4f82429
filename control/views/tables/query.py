"""Pages of the tables: filter, sort and cut over Arrow columns, then rows for what is left.

Filter and sort make row numbers, not tables: of 133,000 partitions only the hundred rows of a page
are ever gathered. Sorting is stable and by value, never by text; unknown values come last in both
directions.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control.views.tables.column import Column, ColumnError, Table, chosen
from control.views.tables.filters import FilterError, filter_mask
from control.views.tables.rows import Row

ORDERS_MAX: Final = 16
"""Of 133,000 rows each takes one megabyte."""
LIMIT_MAX: Final = 1_000
"""No screen shows more rows at once; a larger limit is cut down to this."""

Order = npt.NDArray[np.int64] | None
"""Row numbers of a table; None: all of them, in its own order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """Query of a table. ``sort`` is a column's name, with ``-`` in front for descending."""

    filter: str = ""
    sort: str = ""
    offset: int = 0
    limit: int = 100
    columns: str = ""
    """Names of the wanted columns, in order, between commas; empty: all of the table's."""
    hides_internal: bool = False
    """Lists of topics and groups leave out internal ones, unless the filter names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of rows, and what it was cut from."""

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    total: int
    """Rows of the whole table."""
    matching: int
    """Rows that pass the filter."""
    offset: int = 0
    problem: str = ""
    """Why filter, sort or columns could not be followed; the rows are then empty."""
    table: pa.Table | None = field(default=None, compare=False, repr=False)
    """What it was cut from, as ``kind`` declares it; None with a problem."""
    order: Order = field(default=None, compare=False, repr=False)
    kind: Table | None = field(default=None, compare=False, repr=False)
    sorted_by: Column | None = None
    """None: it stands in the table's own order."""

    @classmethod
    def whole(cls, rows: Sequence[Row], columns: Sequence[Column]) -> Self:
        """All rows of a small table, as they stand."""
        count = len(rows)
        return cls(rows=tuple(rows), columns=tuple(columns), total=count, matching=count)

    @property
    def every_column(self) -> tuple[Column, ...]:
        """Its columns with those that were not chosen."""
        return self.columns if self.kind is None else self.kind.columns

    @property
    def found(self) -> pa.Table | None:
        """All rows that pass the filter, sorted; None with a problem."""
        return None if self.table is None else _taken(self.table, self.order)


def page_of(
    table: pa.Table,
    kind: Table,
    query: TableQuery,
    *,
    known: Callable[[Callable[[], Order]], Order] = lambda find: find(),
) -> Page:
    """The wanted page. What cannot be followed of the query is told in ``problem``.

    ``known`` may have the order of these very rows by this filter and sort already.
    """
    empty = Page(
        rows=(), columns=kind.columns, total=table.num_rows, matching=0, offset=query.offset
    )
    try:
        shown = chosen(kind.columns, query.columns)
        order = known(lambda: order_of(table, kind, query))
    except (FilterError, ColumnError) as error:
        return replace(empty, problem=str(error))
    limit, start = min(max(query.limit, 0), LIMIT_MAX), max(query.offset, 0)
    if order is None:
        matching_count, cut = table.num_rows, table.slice(start, limit)
    else:
        matching_count, cut = len(order), table.take(order[start : start + limit])
    return replace(
        empty,
        rows=kind.rows(cut.to_pylist()),
        columns=shown,
        matching=matching_count,
        table=table,
        order=order,
        kind=kind,
        sorted_by=kind.named(query.sort.removeprefix("-")) if query.sort else None,
    )


def matching(table: pa.Table, kind: Table, query: TableQuery) -> pa.Table:
    """All rows that pass the filter, sorted.

    Raises:
        FilterError, ColumnError: a filter or sort that cannot be followed.
    """
    return _taken(table, order_of(table, kind, query))


def order_of(table: pa.Table, kind: Table, query: TableQuery) -> Order:
    """Numbers of the rows that pass the filter, sorted.

    Raises:
        FilterError: a filter that cannot be followed.
        ColumnError: an order by a column that is not there.
    """
    rows: Order = None
    if query.filter.strip():
        mask = filter_mask(table, query.filter, kind.filters, name_column=kind.searched)
        rows = np.flatnonzero(mask)
    if not query.sort:
        return rows
    column = table[kind.named(query.sort.removeprefix("-")).sort]
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


class SortCache:
    """The last orders of one snapshot's tables that were asked for: who pages, jumps or refreshes
    does not filter and sort again. Safe between threads; two that ask at once may both find it."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Order] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, find: Callable[[], Order]) -> Order:
        """The order under this key; ``find`` finds it where it is not known."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        order = find()
        with self._lock:
            self._known[key] = order
            while len(self._known) > ORDERS_MAX:
                self._known.popitem(last=False)
        return order
