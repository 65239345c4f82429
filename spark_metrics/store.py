"""Writes a store, version by version: files first, the manifest last.

A batch that was committed is never written twice (``has_committed``); a batch that was killed
half way leaves files that no manifest names, which ``sweep`` removes. What lay there before, and
was not understood, is set aside (``spark_metrics.existing_store``). Of history a batch writes one
file per table (two, where a minute ends in it); ``upkeep`` makes fewer of them.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.errors import StoreTakenError
from spark_metrics.existing_store import FOLDERS, ExistingStore, look
from spark_metrics.files import Order, StoreFiles
from spark_metrics.keys import sorted_by
from spark_metrics.layout import (
    GRACE_MS,
    MANIFEST,
    SET_ASIDE,
    ForeignFormatError,
    HistoryFile,
    Manifest,
    ManifestError,
    decode_manifest,
    encode_manifest,
    history_path,
    next_version,
    now_path,
)
from spark_metrics.nullability import declared
from spark_metrics.points import (
    COARSER,
    FINE,
    HISTORY_TABLES,
    MINUTE,
    RETENTIONS_MS,
    SHAPES,
    SPANS_MS,
)
from spark_metrics.upkeep import LATE_MS, Upkeep, adopted, due_tasks

RETENTION_MS: Final = RETENTIONS_MS[FINE]
UPKEEP_RETRY_MS: Final = 60_000
"""History that could not be merged (no space, say) is tried again so long after."""
SWEEP_MS: Final = 10_000
BAD_FILES_MAX: Final = 20
WRITERS: Final = 2
"""So many files of history are written side by side."""
BAD: Final = "bad"


def wall_clock_ms() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one batch wants to become the newest version."""

    query_id: str
    batch_id: int
    interval_ms: int
    now: Mapping[str, pa.Table]
    """Tables as in ``NOW_TABLES``, those that are not written yet."""
    written: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Files that ``StoreWriter.put`` has written for this version, per table."""
    history: Mapping[str, pa.Table]
    """New rows of ``HISTORY_TABLES``; a table without rows may be absent."""
    memory: Mapping[str, Any] = field(default_factory=dict)
    state_rows: int = 0
    bad_records: int = 0
    bad_values: Sequence[Mapping[str, Any]] = ()
    """Some of the records that could not be read, to be kept aside."""


class StoreWriter:
    """The only writer of a store; a second one is found out at its next commit."""

    def __init__(
        self,
        store: str,
        *,
        retention_ms: int = RETENTION_MS,
        clock_ms: Callable[[], int] = wall_clock_ms,
        executor: Executor | None = None,
        on_notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``retention_ms`` is that of fine history, and the least of the coarser spans.

        ``executor`` runs the upkeep; a thread of its own where none is given.
        """
        self.files = StoreFiles(store)
        self._store = store
        self._retentions_ms = {
            span: max(retention_ms, kept_ms if span != FINE else 0)
            for span, kept_ms in RETENTIONS_MS.items()
        }
        self._upkeep = Upkeep(self.files, executor)
        self._upkeep_due_ms = 0
        self._on_notice = on_notice
        self._clock_ms = clock_ms
        self._unnamed_since_ms: dict[str, int] = {}
        self._swept_ms = 0
        self._pending: int | None = None
        self._threads = ThreadPoolExecutor(WRITERS)
        self.files.make_folders(*FOLDERS, BAD)
        found = look(self.files, store)
        self.manifest: Manifest | None = found.manifest
        self.begun_afresh_because: str | None = None
        """Why an earlier store could not be gone on with."""
        self._seen = found.value
        """The newest manifest in the store, as it was written or judged."""
        self._to_set_aside: dict[str, None] = {}
        self._take_over(found)

    def _take_over(self, found: ExistingStore) -> None:
        self.manifest, self._seen = found.manifest, found.value
        self._to_set_aside |= dict.fromkeys(found.set_aside)
        if found.manifest is None:
            self.begun_afresh_because = found.why or self.begun_afresh_because
        elif found.why:
            self._on_notice(f"the metrics store {self._store}: {found.why}")

    def check(self) -> None:
        """Look whether the store is still as this job left it; begin afresh where it is gone.

        Raises:
            StoreTakenError: another job has committed since this one last did.
        """
        self._pending = None
        if not self._is_ours():
            self.files.make_folders(*FOLDERS, BAD)
            self._take_over(look(self.files, self._store))
            self.begun_afresh_because = self.begun_afresh_because or "its manifest is gone"

    def _is_ours(self) -> bool:
        """Whether this job can go on with what it knows: two would undo each other's history.

        A manifest that was spoilt or lost meanwhile is written again, while its files are there.
        """
        value = self.files.read_bytes(MANIFEST)
        if value == self._seen:
            return True
        try:
            found = None if value is None else decode_manifest(value)
        except ForeignFormatError as error:
            raise _taken(self._store, str(error)) from error
        except ManifestError:
            found = None
        if found is not None:
            why = f"it holds version {found.version}, which this job has not written"
            raise _taken(self._store, why)
        if self.manifest is None:
            return False
        there = self.files.list_files("now")
        if not all(path in there for paths in self.manifest.now.values() for path in paths):
            return False
        self._seen = value
        self._on_notice(f"the manifest of {self._store} was lost or spoilt: it is written again")
        return True

    def has_committed(self, query_id: str, batch_id: int) -> bool:
        """Whether this batch is in the store already (Spark replays the last one after a kill)."""
        found = self.manifest
        return found is not None and found.query_id == query_id and batch_id <= found.batch_id

    def commit(self, batch: Commit) -> Manifest:
        """Write the batch and make it the newest version.

        Raises:
            StoreTakenError: another job has committed meanwhile.
        """
        now_ms = self._clock_ms()
        version = self._version()
        manifest = Manifest(
            version=version,
            written_ms=now_ms,
            query_id=batch.query_id,
            batch_id=batch.batch_id,
            interval_ms=batch.interval_ms,
            now={
                **{table: (self.put(table, "0", rows),) for table, rows in batch.now.items()},
                **batch.written,
            },
            history=self._write_history(batch.history, version, now_ms),
            memory=batch.memory,
            state_rows=batch.state_rows,
            bad_records_total=self.bad_records_total + batch.bad_records,
        )
        self._keep_bad(batch.bad_values, version)
        if not self._is_ours():
            raise FileNotFoundError(f"{self._store} was removed while a batch was written to it")
        self._set_aside(now_ms)
        value = encode_manifest(manifest)
        self.files.replace(MANIFEST, value)
        self.manifest, self._seen = manifest, value
        self.begun_afresh_because = None
        self._pending = None
        self._keep_up(manifest, now_ms)
        self.maybe_sweep(now_ms)
        return manifest

    @property
    def bad_records_total(self) -> int:
        return self.manifest.bad_records_total if self.manifest else 0

    def put(self, table: str, part: str, rows: pa.Table) -> str:
        """Write a part of a table of the version that will be committed next; its path.

        It may have columns beside those that readers see.
        """
        path = now_path(table, self._version(), part)
        self.files.write_table(path, declared(rows))
        return path

    def _version(self) -> int:
        """The version that is being written."""
        if self._pending is None:
            previous = self.manifest.version if self.manifest else 0
            self._pending = next_version(previous, self._clock_ms())
        return self._pending

    def _write_history(
        self, fresh: Mapping[str, pa.Table], version: int, now_ms: int
    ) -> dict[str, tuple[HistoryFile, ...]]:
        done = self._upkeep.take()
        for it in done:
            if it.problem:
                self._upkeep_due_ms = now_ms + UPKEEP_RETRY_MS
                again = f"it is tried again in {UPKEEP_RETRY_MS // 1_000} s"
                self._on_notice(f"{it.task.table} could not be merged: {it.problem}; {again}")
            for path, why in it.damaged.items():
                self._on_notice(f"{path} is left out of history: {why}")
            self._to_set_aside |= dict.fromkeys(it.damaged)
        kept = adopted(self.manifest.history if self.manifest else {}, done)
        history = {
            table: [file for file in kept.get(table, ()) if not self._is_over(file, now_ms)]
            for table in {**HISTORY_TABLES, **kept}
        }
        parts = [
            (table, number, version, rows)
            for table in HISTORY_TABLES
            for number, rows in enumerate(_cut_at_last_minute(fresh.get(table)))
        ]
        written = self._threads.map(lambda part: self._write_history_file(*part), parts)
        for (table, *_), file in zip(parts, written, strict=True):
            history[table].append(file)
        return {table: tuple(files) for table, files in history.items()}

    def _is_over(self, file: HistoryFile, now_ms: int) -> bool:
        """Whether its time is over; what the next span lacks still is kept as long as that."""
        coarser = COARSER.get(file.span)
        span = file.span if file.is_rolled or coarser is None else coarser
        return file.until_ms < now_ms - self._retentions_ms[span]

    def _write_history_file(
        self, table: str, number: int, version: int, rows: pa.Table
    ) -> HistoryFile:
        path = history_path(table, FINE, version, number)
        key = list(SHAPES[table].key)
        order = Order(key=key, measured="at_ms", rows_max=rows.num_rows)
        count, ends = self.files.write_sorted(
            path, [sorted_by(rows, key)], SHAPES[table].schema, order=order
        )
        return HistoryFile(
            path=path,
            span=FINE,
            level=0,
            rows=count,
            from_ms=ends[0],
            until_ms=ends[1],
        )

    def _keep_up(self, manifest: Manifest, now_ms: int) -> None:
        """Begin what is due of merging history, unless the last lot is still under way."""
        if not self._upkeep.is_idle or now_ms < self._upkeep_due_ms:
            return
        late_ms = max(LATE_MS, 3 * manifest.interval_ms)
        tasks = due_tasks(manifest.history, now_ms, late_ms)
        if tasks:
            self._upkeep.begin(tasks, manifest.version)

    def _keep_bad(self, values: Sequence[Mapping[str, Any]], version: int) -> None:
        if not values:
            return
        lines = "".join(json.dumps(value, default=str) + "\n" for value in values)
        self.files.replace(f"{BAD}/{version}.jsonl", lines.encode())
        for path in self.files.list_files(BAD)[:-BAD_FILES_MAX]:
            self.files.delete(path)

    def _set_aside(self, now_ms: int) -> None:
        """Move what is not to be deleted out of the way, and tell where it is."""
        if not self._to_set_aside:
            return
        there = {path for folder in FOLDERS for path in self.files.list_files(folder)}
        # Of one that is gone there is nothing to keep.
        paths = [path for path in self._to_set_aside if path in there or path == MANIFEST]
        if paths:
            folder = f"{SET_ASIDE}/{datetime.fromtimestamp(now_ms / 1_000, UTC):%Y%m%dT%H%M%SZ}"
            self.files.set_aside(paths, folder)
            self._on_notice(
                f"{len(paths)} files that could not be gone on with now lie in "
                f"{self._store}/{folder} ({paths[0]}, …); delete them when nobody wants them"
            )
        self._to_set_aside = {}

    def maybe_sweep(self, now_ms: int) -> None:
        """Remove files that no manifest has named for ``GRACE_MS``."""
        if self.manifest is None or now_ms - self._swept_ms < SWEEP_MS:
            return
        self._swept_ms = now_ms
        try:
            self._sweep(self.manifest.paths() | self._upkeep.outputs, now_ms)
        except OSError as error:
            self._on_notice(f"old files of the store could not be removed, tried again: {error}")

    def _sweep(self, named: Set[str], now_ms: int) -> None:
        found = [path for folder in FOLDERS for path in self.files.list_files(folder)]
        since_ms = self._unnamed_since_ms
        unnamed = {path: since_ms.get(path, now_ms) for path in found if path not in named}
        self._unnamed_since_ms = dict(unnamed)
        for path in [path for path, at_ms in unnamed.items() if now_ms - at_ms >= GRACE_MS]:
            self.files.delete(path)
            del self._unnamed_since_ms[path]


def _taken(store: str, why: str) -> StoreTakenError:
    return StoreTakenError(
        f"the metrics store {store} belongs to another job",
        why=why,
        what_next="Stop one of the two jobs, or give each its own --store",
    )


def _cut_at_last_minute(rows: pa.Table | None) -> list[pa.Table]:
    """The rows up to the minute of the newest, and those of it: each minute's files are its own."""
    if rows is None or not rows.num_rows:
        return []
    begin_ms = pc.max(rows["at_ms"]).as_py() // SPANS_MS[MINUTE] * SPANS_MS[MINUTE]
    is_new = pc.greater_equal(rows["at_ms"], begin_ms)
    if pc.all(is_new).as_py():
        return [rows]
    parts = [rows.filter(pc.invert(is_new)), rows.filter(is_new)]
    return [part for part in parts if part.num_rows]
