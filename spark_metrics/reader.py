"""Reads a store: "now" by Arrow, history by DuckDB. Knows nothing of Spark.

A reader never blocks the job and is never blocked by it: it opens what the manifest names, and
where the job has replaced a file meanwhile, it begins again with the newer manifest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from spark_metrics.errors import StoreUnreadableError
from spark_metrics.files import StoreFiles
from spark_metrics.layout import MANIFEST, HistoryFile, Manifest, ManifestError, decode_manifest
from spark_metrics.queries import HistoryRange, Query, commit_points, partition_points, rate_sums
from spark_metrics.tables import COMMITS, HISTORY_TABLES, NOW_TABLES

ATTEMPTS: Final = 4
"""How often a reading begins again because the job has replaced the files under it."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """The newest state of everything, of one version."""

    version: int
    written_ms: int
    tables: Mapping[str, pa.Table]
    """Keyed by ``NOW_TABLES``, with exactly these schemas."""


class AggregatesReader:
    """Reads the store of a metrics job. Safe to share between threads."""

    def __init__(self, store: str) -> None:
        """``store``: a folder, or a URL that pyarrow reaches; it need not exist yet."""
        self._store = store
        self._files = StoreFiles(store)
        self._cached: Aggregates | None = None
        self._lock = Lock()
        self._duckdb = duckdb.connect(config={"threads": 2, "memory_limit": "512MB"})

    def version(self) -> int | None:
        """Version of the newest committed state, from the manifest alone; None before it."""
        manifest = self._manifest()
        return None if manifest is None else manifest.version

    def now(self) -> Aggregates | None:
        """The newest committed state (the same object while it has not changed).

        Raises:
            StoreUnreadableError: there is a store, but it cannot be read.
        """
        with self._lock:
            return self._again(self._read_now)

    def now_table(self, name: str) -> pa.Table:
        """One table of "now" by itself; without rows while there is no store yet.

        Raises:
            StoreUnreadableError: as ``now``.
        """
        schema = NOW_TABLES[name]
        found = self._again(lambda manifest: self._files.read_table(manifest.now[name], schema))
        return schema.empty_table() if found is None else found

    def top_commits(self, *, cluster: str, count: int, group_id: str | None = None) -> pa.Table:
        """The rows of ``COMMITS`` with the most lag, most first: what a list shows of millions."""
        names = ", ".join(COMMITS.names)
        keys = {"cluster": cluster, "group_id": group_id}
        known = {name: value for name, value in keys.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in known)
        query = Query(
            sql=f"SELECT {names} FROM history WHERE {where} AND lag IS NOT NULL "  # noqa: S608
            "ORDER BY lag DESC, topic, partition, group_id LIMIT ?",
            values=[*known.values(), count],
            schema=COMMITS,
        )
        found = self._again(lambda manifest: self._run(query, COMMITS, manifest.now["commits"]))
        return COMMITS.empty_table() if found is None else found

    def partition_history(
        self,
        *,
        cluster: str,
        topic: str,
        partition: int | None = None,
        since_ms: int,
        until_ms: int,
        points_max: int = 600,
    ) -> pa.Table:
        """Rows of ``PARTITION_HISTORY`` by partition and time, at most ``points_max`` each.

        Within one point the rates are means and everything else is the newest.
        """
        keys = {"cluster": cluster, "topic": topic, "partition": partition}
        span = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=points_max)
        return self._history("partition_history", keys, span, partition_points)

    def commit_history(
        self,
        *,
        cluster: str,
        group_id: str,
        topic: str | None = None,
        partition: int | None = None,
        since_ms: int,
        until_ms: int,
        points_max: int = 600,
    ) -> pa.Table:
        """Rows of ``COMMIT_HISTORY`` by topic, partition and time."""
        keys = {"cluster": cluster, "group_id": group_id, "topic": topic, "partition": partition}
        span = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=points_max)
        return self._history("commit_history", keys, span, commit_points)

    def topic_history(
        self, *, cluster: str, topic: str, since_ms: int, until_ms: int, points_max: int = 600
    ) -> pa.Table:
        """``RATE_HISTORY`` of one topic: its partitions summed."""
        span = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=points_max)
        return self._history("partition_history", _known(cluster, topic=topic), span, rate_sums)

    def broker_history(
        self, *, cluster: str, broker: int, since_ms: int, until_ms: int, points_max: int = 600
    ) -> pa.Table:
        """``RATE_HISTORY`` of the partitions that this broker led at each time."""
        span = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=points_max)
        return self._history("partition_history", _known(cluster, leader=broker), span, rate_sums)

    def cluster_history(
        self, *, cluster: str, since_ms: int, until_ms: int, points_max: int = 600
    ) -> pa.Table:
        """``RATE_HISTORY`` of all partitions of the cluster."""
        span = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=points_max)
        return self._history("partition_history", _known(cluster), span, rate_sums)

    def _manifest(self) -> Manifest | None:
        try:
            value = self._files.read_bytes(MANIFEST)
            return None if value is None else decode_manifest(value)
        except (ManifestError, OSError) as error:
            raise self._unreadable(error) from error

    def _read_now(self, manifest: Manifest) -> Aggregates:
        if self._cached is not None and self._cached.version == manifest.version:
            return self._cached
        tables = {
            table: self._files.read_table(manifest.now[table], schema)
            for table, schema in NOW_TABLES.items()
        }
        self._cached = Aggregates(
            version=manifest.version, written_ms=manifest.written_ms, tables=tables
        )
        return self._cached

    def _history(
        self,
        table: str,
        keys: Mapping[str, object],
        span: HistoryRange,
        build: Callable[[Mapping[str, object], HistoryRange, int], Query],
    ) -> pa.Table:
        def read(manifest: Manifest) -> pa.Table:
            files = [file for file in manifest.history.get(table, ()) if _overlaps(file, span)]
            query = build(keys, span, manifest.interval_ms)
            return self._run(query, HISTORY_TABLES[table], [file.path for file in files])

        found = self._again(read)
        nothing = build(keys, span, 1_000)
        return self._run(nothing, HISTORY_TABLES[table], []) if found is None else found

    def _run(self, query: Query, schema: Any, files: Sequence[str]) -> pa.Table:
        paths = [self._files.absolute(path) for path in files]
        with self._duckdb.cursor() as connection:
            if paths and self._files.is_local:
                connection.execute(_view_of(paths))
            elif paths:
                remote = ds.dataset(paths, schema, format="parquet", filesystem=self._files.system)
                connection.register("history", remote)
            else:
                connection.register("history", schema.empty_table())
            answer = connection.sql(query.sql, params=list(query.values))
            found: Any = answer.to_arrow_table()
        return found.cast(query.schema)

    def _again(self, read: Callable[[Manifest], _T]) -> _T | None:
        """Read by the newest manifest; begin again when the job has replaced its files."""
        failure: Exception | None = None
        for _ in range(ATTEMPTS):
            manifest = self._manifest()
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


def _known(cluster: str, **keys: object) -> dict[str, object]:
    return {"cluster": cluster, **keys}


def _overlaps(file: HistoryFile, span: HistoryRange) -> bool:
    return file.until_ms >= span.since_ms and file.from_ms <= span.until_ms


def _view_of(paths: Sequence[str]) -> str:
    """A view that only this connection sees, so that threads may ask at the same time."""
    quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return f"CREATE OR REPLACE TEMP VIEW history AS FROM read_parquet([{quoted}])"
