"""A store opened for reading: the manifest, DuckDB over the files that it names, and again.

A reading never blocks the job and is never blocked by it: it opens what the manifest names, and
where the job has replaced a file meanwhile, it begins again with the newer manifest.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import duckdb
import pyarrow as pa

from spark_metrics.errors import StoreUnreadableError
from spark_metrics.files import StoreFiles
from spark_metrics.history_view import open_history
from spark_metrics.layout import MANIFEST, Manifest, ManifestError, decode_manifest
from spark_metrics.queries import Query

ATTEMPTS: Final = 4
"""How often a reading begins again because the job has replaced the files under it."""

_T = TypeVar("_T")


class OpenedStore:
    """Safe to share between threads."""

    def __init__(self, store: str) -> None:
        self._store = store
        self.files = StoreFiles(store)
        self._decoded: tuple[bytes, Manifest] | None = None
        self._duckdb = duckdb.connect(config={"threads": 2, "memory_limit": "512MB"})

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
            return known[1]
        except (ManifestError, OSError) as error:
            raise self._unreadable(error) from error

    def run(self, query: Query, paths: Sequence[str], stored: Any) -> pa.Table:
        """The answer over these files of the schema ``stored``."""
        with self._duckdb.cursor() as connection:
            open_history(connection, self.files, paths, stored)
            answer = connection.sql(query.sql, params=list(query.values))
            found: Any = answer.to_arrow_table()
        return found.cast(query.schema)

    def again(self, read: Callable[[Manifest], _T]) -> _T | None:
        """Read by the newest manifest; begin again when the job has replaced its files.

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
            except (OSError, KeyError, pa.ArrowException, duckdb.Error) as error:
                failure = error
        assert failure is not None
        raise self._unreadable(failure) from failure

    def _unreadable(self, error: Exception) -> StoreUnreadableError:
        return StoreUnreadableError(
            f"the metrics store {self._store} cannot be read",
            why=str(error).strip() or type(error).__name__,
            what_next="Check its disk and rights; the metrics job begins a fresh store "
            "when this one is removed",
        )
