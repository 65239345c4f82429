"""Files of a store as the view ``history`` of a DuckDB connection, wherever the store is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spark_metrics.store.files import StoreFiles

if TYPE_CHECKING:
    import duckdb


def open_history(
    connection: "duckdb.DuckDBPyConnection", files: StoreFiles, paths: Sequence[str], schema: Any
) -> None:
    """A view that only this connection sees, so that threads may ask at the same time."""
    whole = [files.absolute(path) for path in paths]
    if not whole:
        connection.register("history", schema.empty_table())
    elif files.is_local:
        quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in whole)
        # Files of earlier versions lack some columns, and perhaps all do.
        connection.register("columns_of_history", schema.empty_table())
        connection.execute(
            "CREATE OR REPLACE TEMP VIEW history AS "
            f"FROM read_parquet([{quoted}], union_by_name = true) "
            "UNION ALL BY NAME FROM columns_of_history"
        )
    else:
        import pyarrow.dataset as ds

        remote = ds.dataset(whole, schema, format="parquet", filesystem=files.system)
        connection.register("history", remote)
