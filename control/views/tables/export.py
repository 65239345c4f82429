"""Export of a table as CSV or JSON: all rows that pass its filter, in its order.

Figures are exported as numbers in the unit of their column's values (bytes, records per second,
milliseconds), unknown and endless ones as empty (CSV) or null (JSON); lists of brokers as ids with
blanks between them, the preferred leader first. Where a group has no verdict its status is unknown,
and another column says why. In CSV a name that a spreadsheet would take for a formula (a group may
be called `=1+1`) has an apostrophe before it.

Everything is done by column: 35,000 partitions take a fraction of a second. Rows of small tables
become columns as well, so that programs filter, sort and page them as the large ones.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from control.views.tables.column import Column, Table
from control.views.tables.filters import FieldKind, FilterField
from control.views.tables.query import Page, TableQuery, page_of
from control.views.tables.rows import Cell, CellValue, Row

FORMATS: Final = ("csv", "json")
ROWS_AT_ONCE: Final = 10_000
_FORMULA: Final = r"^([=+\-@\t\r])"
_WORDS: Final = ("status", "state", "severity")
"""Columns whose values are ranks to sort by; programs get the words."""
_ANYWHERE: Final = ""
"""Column with all texts of a row, for words without a field."""
PageOf = Callable[[TableQuery], Page]


class ExportError(ValueError):
    """Nothing to export; the text says why."""


def export(page_of: PageOf, query: TableQuery, *, format: str) -> Iterator[str]:  # noqa: A002
    """The document in pieces, so that a large table need not be in memory as text.

    Raises:
        ExportError: no such format, or a filter that cannot be followed.
    """
    if format not in FORMATS:
        raise ExportError(f"format {format!r} is not {' or '.join(FORMATS)}")
    page = page_of(replace(query, offset=0, limit=0))
    if page.problem:
        raise ExportError(page.problem)
    return document(exported(page), format)


def document(table: pa.Table, format: str) -> Iterator[str]:  # noqa: A002
    """A table of plain values as one of ``FORMATS``, in pieces."""
    return _as_csv(table) if format == "csv" else _as_json(table)


def exported(page: Page) -> pa.Table:
    """All rows that the page was cut from, in its columns, as they are exported."""
    found = page.found
    assert found is not None
    return _plain_columns(found, page)


def values_of(page: Page) -> list[dict[str, Any]]:
    """The same rows as numbers and words; null for what is unknown or endless."""
    rows: list[dict[str, Any]] = exported(page).to_pylist()
    return rows


def page_values(page: Page) -> list[dict[str, Any]]:
    """The rows of this page alone, as ``values_of`` tells them."""
    assert page.table is not None
    start, end = page.offset, page.offset + len(page.rows)
    cut = (
        page.table.take(page.order[start:end]) if page.order is not None else page.table[start:end]
    )
    rows: list[dict[str, Any]] = _plain_columns(cut, page).to_pylist()
    return rows


def cells_of(row: Row) -> dict[str, CellValue]:
    """Values of a row by its columns' ids; words for a status or a state."""
    return {
        name: cell.text if name in _WORDS else _plain_value(cell)
        for name, cell in row.cells.items()
    }


def page_of_rows(kind: Table, rows: Sequence[Row], query: TableQuery) -> Page:
    """A page of rows that are in memory: a word without a field is looked for in all cells."""
    values = [cells_of(row) for row in rows]
    columns = tuple(map(_by_id, kind.columns))
    table = pa.table(
        {
            **{it.id: _values(it, [row[it.id] for row in values]) for it in columns},
            _ANYWHERE: pa.array([_texts(row) for row in rows], pa.string()),
        }
    )
    plain = Table(name=kind.name, columns=columns, key=lambda _: "", searched=_ANYWHERE)
    return page_of(table, plain, query)


def is_figure(column: Column) -> bool:
    """Whether programs get a number; a time is milliseconds since the epoch."""
    compared = {it.kind for it in column.filters.values()}
    return column.is_number or bool(compared & {FieldKind.NUMBER, FieldKind.DURATION})


def _by_id(column: Column) -> Column:
    place, (name, *_) = column.id, column.filters
    found = FilterField(place, column.unit.kind, name)
    return replace(
        column,
        sort=place,
        export=place,
        filters=dict.fromkeys(column.filters, found),
        cell=lambda record: Cell(record[place], ""),
    )


def _values(column: Column, values: Sequence[CellValue]) -> pa.Array:
    if is_figure(column):
        whole = all(value is None or isinstance(value, int) for value in values)
        return pa.array(values, pa.int64() if whole else pa.float64())
    return pa.array([None if it is None else str(it) for it in values], pa.string())


def _texts(row: Row) -> str:
    told: Mapping[str, Cell] = row.cells
    return " ".join(f"{cell.text} {cell.value}" for cell in told.values())


def _plain_value(cell: Cell) -> Any:
    value = cell.value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain_columns(found: pa.Table, page: Page) -> pa.Table:
    return pa.table({it.id: _plain(found[it.export]) for it in page.columns})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as CSV and JSON can both hold it."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_list(column.type):
        texts = pc.cast(column, pa.list_(pa.string()))
        return pc.binary_join(texts, " ")
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_finite(column), column, None)
    return column


def _as_csv(table: pa.Table) -> Iterator[str]:
    yield ",".join(table.column_names) + "\n"
    for piece in _pieces(_without_formulas(table)):
        try:
            yield _csv_text(piece, "none")
        except pa.ArrowInvalid:  # a text that must be quoted; then all texts are
            yield _csv_text(piece, "needed")


def _without_formulas(table: pa.Table) -> pa.Table:
    for index, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            inert = pc.replace_substring_regex(table[index], _FORMULA, r"'\1")
            table = table.set_column(index, column.name, inert)
    return table


def _csv_text(piece: pa.Table, quoting: str) -> str:
    sink = pa.BufferOutputStream()
    csv.write_csv(piece, sink, csv.WriteOptions(include_header=False, quoting_style=quoting))
    text: str = sink.getvalue().to_pybytes().decode()
    return text


def _as_json(table: pa.Table) -> Iterator[str]:
    between = "["
    for piece in _pieces(table):
        lines = [json.dumps(record, ensure_ascii=False) for record in piece.to_pylist()]
        yield f"{between}\n" + ",\n".join(lines)
        between = ","
    yield "[]\n" if between == "[" else "\n]\n"


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        yield table.slice(start, ROWS_AT_ONCE)
