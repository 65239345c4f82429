"""What a table shows, as CSV or JSON: all rows that pass its filter, in its order.

Figures are exported as numbers in the unit of their column's values (bytes, records per second,
milliseconds), unknown ones as empty (CSV) or null (JSON); texts are exported as shown.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from control.views.pages import LIMIT_MAX, Page, TableQuery
from control.views.rows import CellValue, Row

FORMATS: Final = ("csv", "json")
PageOf = Callable[[TableQuery], Page[Any]]


class ExportError(ValueError):
    """Nothing to export; the text says why."""


def export(page_of: PageOf, query: TableQuery, *, format: str) -> Iterator[str]:  # noqa: A002
    """The document in pieces, so that a large table need not be in memory as text.

    Raises:
        ExportError: no such format, or a filter that cannot be followed.
    """
    if format not in FORMATS:
        raise ExportError(f"format {format!r} is not {' or '.join(FORMATS)}")
    first = page_of(replace(query, offset=0, limit=LIMIT_MAX))
    if first.problem:
        raise ExportError(first.problem)
    records = _records(page_of, query, first)
    columns = [column.id for column in first.columns]
    return _as_csv(records, columns) if format == "csv" else _as_json(records)


def _records(page_of: PageOf, query: TableQuery, page: Page[Any]) -> Iterator[dict[str, CellValue]]:
    offset = 0
    while page.rows:
        for row in page.rows:
            yield _record(row, page)
        offset += len(page.rows)
        if offset >= page.matching:
            return
        page = page_of(replace(query, offset=offset, limit=LIMIT_MAX))


def _record(row: Row, page: Page[Any]) -> dict[str, CellValue]:
    values: dict[str, CellValue] = {}
    for column in page.columns:
        cell = row.cell(column.id)
        values[column.id] = cell.value if column.is_number else cell.text
    return values


def _as_csv(records: Iterator[dict[str, CellValue]], columns: list[str]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.DictWriter(line, columns, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow(record)
        yield line.getvalue()
        line.seek(0)
        line.truncate()
    yield line.getvalue()


def _as_json(records: Iterator[dict[str, CellValue]]) -> Iterator[str]:
    between = "["
    for record in records:
        yield f"{between}\n{json.dumps(record, ensure_ascii=False)}"
        between = ","
    yield "[]\n" if between == "[" else "\n]\n"
