"""A store opened for reading: the manifest, DuckDB over the files that it names, and again.

A reading never blocks the job and is never blocked by it: it opens what the manifest names, and
where the job has replaced a file meanwhile, it begins again with the newer manifest.
"""

import errno
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from spark_metrics.history.point_merge import ROWS_MAX
from spark_metrics.history.sql import Query
from spark_metrics.read.row_lookup import Lookup
from spark_metrics.store.damage import GONE, damage
from spark_metrics.store.existing import unreadable
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import MANIFEST, Manifest, ManifestError, decode_manifest

ATTEMPTS: Final = 4
"""How often a reading begins again because the job has replaced the files under it."""

_OF_FILES: Final = (None, errno.ENOENT)
"""Errors of the system that may be a file's fault; others are better in a minute, perhaps."""

if TYPE_CHECKING:
    import duckdb

_T = TypeVar("_T")


DUCKDB: Final[dict[str, Any]] = {
    "threads": 2,
    "memory_limit": "512MB",
    # Its allocator gives back what a query needed once that is over.
    "allocator_flush_threshold": "8MB",
    "allocator_bulk_deallocation_flush_threshold": "8MB",
}


class QueryError(OSError):
    """DuckDB could not answer over these files."""


class OpenedStore:
    """Safe to share between threads. Who asks of few rows of history never loads DuckDB."""

    def __init__(self, store: str) -> None:
        self._store = store
        self.files = StoreFiles(store)
        self._lookup = Lookup(self.files)
        self._decoded: tuple[bytes, Manifest] | None = None
        self._damaged: dict[str, str] = {}
        self._duckdb: duckdb.DuckDBPyConnection | None = None
        self._lock = Lock()

    def manifest(self) -> Manifest | None:
        """The newest one; None while there is no store yet.

        Raises:
            StoreUnreadableError: there is a store, but its manifest cannot be read.
        """
        try:
            value = self.files.read_bytes(MANIFEST)
            if value is None:
                return None
            known = self._decoded
            if known is None or known[0] != value:
                known = self._decoded = (value, decode_manifest(value))
                self._lookup.forget_all_but(known[1].paths())
            return known[1]
        except (ManifestError, OSError) as error:
            raise unreadable(self._store, error) from error

    @property
    def clock_skew_ms(self) -> int:
        """The clock of the job's host less the job's time, as the manifest tells that was read
        last."""
        return 0 if self._decoded is None else self._decoded[1].clock_skew_ms

    @property
    def damaged(self) -> dict[str, str]:
        """Files of the newest version that were found to be no tables, or gone, and why."""
        named = set() if self._decoded is None else self._decoded[1].paths()
        return {path: why for path, why in self._damaged.items() if path in named}

    def run(self, query: Query, paths: Sequence[str], stored: Any) -> pa.Table:
        """The answer over these files of the schema ``stored``, without those that are spoilt.

        Raises:
            QueryError: a file cannot be read now.
        """

        def ask(whole: Sequence[str]) -> pa.Table:
            return self._answer(query, lambda it: open_history(it, self.files, whole, stored))

        return self.around_damage(paths, ask)

    def run_for(
        self,
        keys: Mapping[str, object],
        query: Query,
        paths: Sequence[str],
        stored: Any,
        merge: Callable[[pa.Table], pa.Table],
    ) -> pa.Table:
        """The same, where the query wants no rows but those of these keys.

        ``stored`` may be fewer columns than the files have: those that the query reads. ``merge``
        answers it of few rows, without DuckDB.

        Raises:
            OSError, pyarrow.ArrowException: a file cannot be read now.
        """
        if not keys:
            return self.run(query, paths, stored)
        rows = self.around_damage(paths, lambda whole: self._lookup.rows(whole, keys, stored))
        if rows is None:
            return self.run(query, paths, stored)
        if rows.num_rows <= ROWS_MAX:
            return merge(rows)
        return self._answer(query, lambda it: it.register("history", rows))

    def around_damage(self, paths: Sequence[str], ask: Callable[[Sequence[str]], _T]) -> _T:
        """Ask of the files that can be read. What the others are is found out once, for that means
        to read them to their ends."""
        whole = [path for path in paths if path not in self._damaged]
        try:
            return ask(whole)
        except (OSError, pa.ArrowException) as error:
            if getattr(error, "errno", None) not in _OF_FILES:
                raise
            history = [path for path in whole if path.startswith("history/")]
            found = {path: why for path in history if (why := damage(self.files, path))}
            if GONE in found.values():
                newest = self.manifest()  # one that the job has replaced is no loss
                named = set() if newest is None else newest.paths()
                found = {path: why for path, why in found.items() if path in named}
            if not found:
                raise
            self._damaged |= found
        return ask([path for path in whole if path not in found])

    def _answer(
        self, query: Query, open_view: Callable[["duckdb.DuckDBPyConnection"], object]
    ) -> pa.Table:
        import duckdb

        try:
            with self._connection().cursor() as connection:
                open_view(connection)
                answer = connection.sql(query.sql, params=list(query.values))
                found: Any = answer.to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        return found.cast(query.schema)

    def _connection(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        with self._lock:
            if self._duckdb is None:
                self._duckdb = duckdb.connect(config=DUCKDB)
            return self._duckdb

    def table(self, read: Callable[[Manifest], pa.Table], schema: Any) -> pa.Table:
        """``again``; without rows where there is no store yet."""
        found = self.again(read)
        return schema.empty_table() if found is None else found

    def again(self, read: Callable[[Manifest], _T]) -> _T | None:
        """Read by the newest manifest; begin again when the job has replaced its files. None: there
        is no store yet.

        Raises:
            StoreUnreadableError: it fails however often it is begun.
        """
        failure: Exception | None = None
        for _ in range(ATTEMPTS):
            manifest = self.manifest()
            if manifest is None:
                return None
            try:
                return read(manifest)
            except (OSError, KeyError, pa.ArrowException) as error:
                failure = error
        assert failure is not None
        raise unreadable(self._store, failure) from failure


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
