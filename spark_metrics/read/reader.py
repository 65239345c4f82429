"""Reads a store: "now" by Arrow, history by DuckDB. Knows nothing of Spark."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Required, TypedDict, Unpack

import pyarrow as pa

from spark_metrics.history.point_merge import merged_few
from spark_metrics.history.sql import HistoryRange, points
from spark_metrics.read.file_selection import files_for, files_of_span
from spark_metrics.read.open_store import OpenedStore
from spark_metrics.read.past_state import newest_points, now_tables_of
from spark_metrics.store.layout import GRACE_MS, Manifest
from spark_metrics.window.history_points import ALL_BROKERS, HISTORY_TABLES, SHAPES, SPANS_MS
from spark_metrics.window.tables import NOW_TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """The state of everything, of one version or of one moment."""

    version: int
    """The store's version; of a past moment, that time in milliseconds."""
    written_ms: int
    tables: Mapping[str, pa.Table]
    """Keyed by ``NOW_TABLES``, with exactly these schemas."""
    clock_skew_ms: int = 0
    """The clock of the job's host less the job's time, where it is off: times here are the
    job's."""
    gap_since_ms: int | None = None
    """When the state was told that stands for a moment at which nothing was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFiles:
    """The Parquet files of one table of history in one version of the store.

    A file never changes. It stays for ``KEPT_MS`` after the last version that names it: start to
    read within that time, or link or copy the files first. A file that is gone has been merged
    into another: ask again.
    """

    version: int
    table: str
    schema: Any
    """The columns of every file (``HISTORY_TABLES``), in this order; null: unknown."""
    paths: Sequence[str]
    """Whole paths; of a bucket, URLs."""
    rows: int
    """Rows of all files; those of the first and the last may lie outside the times that were
    asked."""


KEPT_MS: Final = GRACE_MS
"""How long a file that no version names any more stays readable."""


class Asked(TypedDict, total=False):
    """The part of a question of history that does not depend on whose points it wants."""

    since_ms: Required[int]
    until_ms: Required[int]
    points_max: int
    """Points of each key; 600 where nothing is said."""
    columns: Sequence[str] | None
    """Figures that are wanted; to read some is a fraction of reading all."""


class AggregatesReader:
    """Reads the store of a metrics job. Safe to share between threads.

    Questions of history span any time that is kept: two hours as sampled, seven days by the
    minute, 400 days by the hour. The answer has at most ``points_max`` points of each key, merged
    as ``window.history_points`` tells: states are the newest, rates are means, and what has
    peaks tells the least and the greatest, too. Before there is a store they are empty.

    Raises (all of them):
        StoreUnreadableError: there is a store, but it cannot be read.
    """

    def __init__(self, store: str) -> None:
        """``store``: a folder, or a URL that pyarrow reaches; it need not exist yet."""
        self._opened = OpenedStore(store)
        self._cached: Aggregates | None = None
        self._lock = Lock()

    def version(self) -> int | None:
        """Version of the newest committed state, from the manifest alone; None before it."""
        manifest = self._opened.manifest()
        return None if manifest is None else manifest.version

    def now_ms(self) -> int:
        """The time now, as times in the store are: by this machine's clock, less how far that of
        the job's host is off."""
        return time.time_ns() // 1_000_000 - self._opened.clock_skew_ms

    def now(self) -> Aggregates | None:
        """The newest committed state (the same object while it has not changed)."""
        with self._lock:
            return self._opened.again(self._read_now)

    def now_table(self, name: str) -> pa.Table:
        """One table of "now" by itself; without rows while there is no store yet."""
        schema, files = NOW_TABLES[name], self._opened.files
        return self._opened.table(lambda it: files.read_table(it.now[name], schema), schema)

    def as_of(self, *, cluster: str, at_ms: int) -> Aggregates | None:
        """The state as history kept it at that time; None: nothing of it is kept.

        What history does not keep (segments' sizes, members, followers' offsets) is null.
        Within the last two hours it is of that second, then of that minute or hour. In a gap it
        is the state at its beginning, for an hour.
        """
        return self.states(cluster=cluster, moments=[at_ms])[0]

    def states(self, *, cluster: str, moments: Sequence[int]) -> list[Aggregates | None]:
        """``as_of`` each of these moments, which are in order: many cost little more than one."""
        return [
            found
            and Aggregates(
                version=at_ms,
                written_ms=at_ms,
                tables=now_tables_of(found[0]),
                gap_since_ms=found[1],
            )
            for at_ms, found in zip(
                moments, newest_points(self._opened, cluster, moments), strict=True
            )
        ]

    @property
    def damaged_files(self) -> Mapping[str, str]:
        """Files of history that an answer was made without, and why: they are spoilt, or gone."""
        return self._opened.damaged

    @property
    def kept_since_ms(self) -> int | None:
        """The time from which on history is kept; None: there is none yet."""
        files = self._opened.again(
            lambda manifest: [file for name in SHAPES for file in manifest.history.get(name, ())]
        )
        return min((file.from_ms for file in files or ()), default=None)

    def partition_history(
        self, *, cluster: str, topic: str, partition: int | None = None, **asked: Unpack[Asked]
    ) -> pa.Table:
        """Rows of ``PARTITION_HISTORY`` by partition and time."""
        keys = {"cluster": cluster, "topic": topic, "partition": partition}
        return self._history("partition_history", keys, **asked)

    def commit_history(
        self,
        *,
        cluster: str,
        group_id: str,
        topic: str | None = None,
        partition: int | None = None,
        **asked: Unpack[Asked],
    ) -> pa.Table:
        """Rows of ``COMMIT_HISTORY`` by topic, partition and time."""
        keys = {"cluster": cluster, "group_id": group_id, "topic": topic, "partition": partition}
        return self._history("commit_history", keys, **asked)

    def topic_history(self, *, cluster: str, topic: str, **asked: Unpack[Asked]) -> pa.Table:
        """Rows of ``TOPIC_HISTORY`` of one topic."""
        return self._history("topic_history", {"cluster": cluster, "topic": topic}, **asked)

    def broker_history(
        self, *, cluster: str, broker: int | None, **asked: Unpack[Asked]
    ) -> pa.Table:
        """Rows of ``BROKER_HISTORY`` of one broker; None: of all, and of their sums."""
        return self._history("broker_history", {"cluster": cluster, "broker": broker}, **asked)

    def cluster_history(self, *, cluster: str, **asked: Unpack[Asked]) -> pa.Table:
        """Rows of ``BROKER_HISTORY`` that are the sums over all brokers."""
        return self.broker_history(cluster=cluster, broker=ALL_BROKERS, **asked)

    def group_history(self, *, cluster: str, group_id: str, **asked: Unpack[Asked]) -> pa.Table:
        """Rows of ``GROUP_HISTORY`` of one group: its partitions summed."""
        return self._history("group_history", {"cluster": cluster, "group_id": group_id}, **asked)

    def job_history(self, **asked: Unpack[Asked]) -> pa.Table:
        """Rows of ``JOB_HISTORY``: the health of the metrics job itself."""
        return self._history("job_history", {}, **asked)

    def history_files(
        self, table: str, *, span: str, since_ms: int = 0, until_ms: int = 1 << 62
    ) -> HistoryFiles | None:
        """The files that hold each reading of these times once, for an engine of one's own.

        Args:
            table: one of ``HISTORY_TABLES``.
            span: what a row stands for: ``fine`` (a reading; kept for two hours), ``minute``
                (seven days) or ``hour`` (400 days). The newest readings, which are not merged
                into the span yet, are rows of a finer one.
            since_ms, until_ms: milliseconds since the epoch, both included. Files are chosen by
                them, rows are not: filter ``at_ms``.

        Returns:
            Paths and schema; None where there is no store yet.

        Raises:
            ValueError: no such table or span.
        """
        for name, known in ((table, HISTORY_TABLES), (span, SPANS_MS)):
            if name not in known:
                raise ValueError(f"{name!r} is none of {', '.join(known)}")

        def read(manifest: Manifest) -> HistoryFiles:
            found = files_of_span(manifest.history.get(table, ()), span, since_ms, until_ms)
            return HistoryFiles(
                version=manifest.version,
                table=table,
                schema=HISTORY_TABLES[table],
                paths=[self._opened.files.url_of(file.path) for file in found],
                rows=sum(file.rows for file in found),
            )

        return self._opened.again(read)

    def _read_now(self, manifest: Manifest) -> Aggregates:
        if self._cached is not None and self._cached.version == manifest.version:
            return self._cached
        files = self._opened.files
        tables = {
            table: files.read_table(manifest.now[table], schema)
            for table, schema in NOW_TABLES.items()
        }
        self._cached = Aggregates(
            version=manifest.version,
            written_ms=manifest.written_ms,
            tables=tables,
            clock_skew_ms=manifest.clock_skew_ms,
        )
        return self._cached

    def _history(
        self,
        table: str,
        keys: Mapping[str, object],
        *,
        since_ms: int,
        until_ms: int,
        points_max: int = 600,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        span = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=points_max)
        shape = SHAPES[table]
        schema = shape.schema if columns is None else shape.schema_of(columns)
        reads = shape.schema if columns is None else shape.schema_of([*columns, "readings"])
        known = {name: value for name, value in keys.items() if value is not None}

        def read(manifest: Manifest) -> pa.Table:
            choice = files_for(manifest.history.get(table, ()), span)
            query = points(shape, keys, span, choice.bucket_ms, columns)
            return self._opened.run_for(
                *(known, query, choice.files, reads),
                merge=lambda rows: merged_few(rows, shape, span, choice.bucket_ms, schema),
            )

        return self._opened.table(read, schema)
