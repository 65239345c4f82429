"""``partiscope export``: history as Delta tables, for DuckDB, Polars, Spark, Trino."""

import time
from dataclasses import asdict
from typing import Annotated

import typer

from control.views.tables.cells import count_cell
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import Data, Json, Store, target_with, write_json
from partiscope.cli.shared.tables import figure, words, write_table
from spark_metrics.history.export import export_history
from spark_metrics.window.errors import ExportError, MetricsError

_COLUMNS = (
    words("Table"),
    *map(figure, ("Version", "Files", "Rows", "Added files", "Removed files")),
)


def export(
    *,
    to: Annotated[str, typer.Option(help="Folder or URL in which each table gets a folder.")],
    store: Store = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Bring the Delta tables of history in a folder or bucket up to date."""
    target = target_with(data=data, store=store)
    try:
        found = export_history(target.store, to, now_ms=time.time_ns() // 1_000_000)
    except MetricsError as error:
        status = Exit.FAILED if isinstance(error, ExportError) else Exit.UNREACHABLE
        raise CommandError(str(error), status) from error
    if not found:
        raise CommandError(
            f"there is no store in {target.store} yet: start `up`, or name one by --store",
            Exit.UNREACHABLE,
        )
    if as_json:
        write_json({"tables": [asdict(it) for it in found]})
        return
    write_table(
        _COLUMNS,
        [
            [
                it.table,
                *(count_cell(n) for n in (it.version, it.files, it.rows, it.added, it.removed)),
            ]
            for it in found
        ],
    )
