"""``partiscope history``: SQL over the store's own files."""

import sys
from decimal import Decimal
from typing import Annotated, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import typer

from control.model.units import counted, parse_byte_rate, parse_duration
from control.views.format import NA
from control.views.tables.export import document as document_of
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.listing import Csv
from partiscope.cli.shared.options import Data, Json, Store, note, target_with, write_json
from partiscope.cli.shared.tables import figure, words, write_table
from spark_metrics.read.history_sql import SqlAnswer, SqlLimits, ask_history
from spark_metrics.window.errors import MetricsError, SqlError, SqlLimitError

ROWS_DEFAULT: Final = 1_000
_STATUS: Final = {SqlError: Exit.WRONG_USE, SqlLimitError: Exit.FAILED}


def history(
    sql: Annotated[str, typer.Argument(help="One SELECT, as DuckDB has it; SHOW TABLES lists.")],
    *,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Rows at most.  [default: 1000; of CSV and JSON all]"),
    ] = None,
    csv: Csv = False,
    as_json: Json = False,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="It is ended after it.")] = "1m",
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Of the computation, and of its rows.")
    ] = "1Gi",
    store: Store = None,
    data: Data = None,
) -> None:
    """Answer SQL over history from the store's files, which it only reads."""
    limits = SqlLimits(
        seconds=_seconds(timeout),
        memory_bytes=_bytes(memory),
        rows=limit or (None if csv or as_json else ROWS_DEFAULT),
    )
    target = target_with(data=data, store=store)
    try:
        answer = ask_history(target.store, sql, limits)
    except MetricsError as error:
        raise CommandError(str(error), _STATUS.get(type(error), Exit.UNREACHABLE)) from error
    if answer is None:
        raise CommandError(
            f"there is no store in {target.store} yet: start `up`, or name one by --store",
            Exit.UNREACHABLE,
        )
    _write(answer, csv=csv, as_json=as_json)


def _write(answer: SqlAnswer, *, csv: bool, as_json: bool) -> None:
    rows = _plain(answer.rows)
    if csv:
        sys.stdout.writelines(document_of(rows, "csv"))
    elif as_json:
        document = {"rows": rows.to_pylist(), "is_cut": answer.is_cut}
        write_json({**document, "damaged_files": dict(answer.damaged_files)})
    else:
        columns = [
            figure(item.name) if _is_number(item.type) else words(item.name, is_long=True)
            for item in rows.schema
        ]
        cells = zip(*(map(_text, column.to_pylist()) for column in rows.columns), strict=True)
        write_table(columns, list(cells), is_chosen=True)
    if answer.is_cut:
        note(f"the first {counted(rows.num_rows, 'row')}; --limit, --csv or --json has more")
    for path, why in answer.damaged_files.items():
        note(f"answered without {path}: {why}")


def _text(value: Any) -> str:
    """A cell."""
    if value is None:
        return NA
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(table: pa.Table) -> pa.Table:
    """Numbers, texts and truths as CSV and JSON have them; times are ISO 8601, the rest text."""
    columns = [_plain_column(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=_distinct(table.column_names))


def _distinct(names: list[str]) -> list[str]:
    """``a``, ``a`` become ``a``, ``a_2``: in JSON each name is there once."""
    found: dict[str, None] = {}
    for name in names:
        number, new = 2, name
        while new in found:
            number, new = number + 1, f"{name}_{number}"
        found[new] = None
    return list(found)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    of = column.type
    if pa.types.is_floating(of):
        return pc.if_else(pc.is_finite(column), column, None)
    if pa.types.is_integer(of) or pa.types.is_boolean(of) or pa.types.is_string(of):
        return column
    values = column.to_pylist()
    if pa.types.is_decimal(of) and not of.scale and all(_is_int64(it) for it in values):
        return pa.chunked_array([pa.array(values, of).cast(pa.int64())])
    if pa.types.is_decimal(of):
        return column.cast(pa.float64())
    texts = [None if it is None else _written(it) for it in values]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _written(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _is_int64(value: Decimal | None) -> bool:
    return value is None or -(1 << 63) <= value < 1 << 63


def _is_number(of: Any) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of))


def _seconds(text: str) -> float:
    milliseconds = parse_duration(text) if text.strip()[-1:].isalpha() else None
    if not milliseconds:
        raise CommandError(f"--timeout {text!r} is no time, such as 30s or 5m", Exit.WRONG_USE)
    return milliseconds / 1_000


def _bytes(text: str) -> int:
    found = parse_byte_rate(text)
    if not found or found < 32 << 20:
        raise CommandError(
            f"--memory {text!r} is no size of 32 MiB or more, such as 512Mi or 4Gi", Exit.WRONG_USE
        )
    return found
