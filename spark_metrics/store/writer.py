"""Writes a store, version by version: files first, the manifest last.

Files are forced to disk before a version names them. A version exists once it is put as the
successor of the one before it, which only one writer can do; then the manifest is replaced, which
is where readers look. A batch that was killed half way leaves files that no manifest names, which
are swept after a grace, whether or not commits succeed. What lay there before, and
was not understood, is set aside (``spark_metrics.store.existing``). Of history a batch writes one
file per table, more where a minute ends in it or a clock is hours behind; ``rollup`` makes fewer of
them.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from spark_metrics.history.rollup import LATE_MS, HistoryMaintenance, adopted, due_tasks
from spark_metrics.store.durable import make_lasting, put_if_absent, require_put_if_absent
from spark_metrics.store.existing import FOLDERS, ExistingStore, away, look
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import (
    COMMITS,
    MANIFEST,
    SET_ASIDE,
    ForeignFormatError,
    HistoryFile,
    Manifest,
    ManifestError,
    decode_manifest,
    encode_manifest,
    newest_successor,
    next_version,
    successor_path,
)
from spark_metrics.store.sweep import Sweep
from spark_metrics.store.table_files import write_now, write_points
from spark_metrics.window.errors import StoreTakenError, StoreUnreadableError
from spark_metrics.window.history_points import (
    COARSER,
    FINE,
    HISTORY_TABLES,
    RETENTIONS_MS,
)

RETENTION_MS: Final = RETENTIONS_MS[FINE]
MAINTENANCE_RETRY_MS: Final = 60_000
"""History that could not be merged (no space, say) is tried again so long after."""
BAD_FILES_MAX: Final = 20
WRITERS: Final = 2
"""Files of history that are written side by side."""
BAD: Final = "bad"


def wall_clock_ms() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds of a clock that nobody sets."""
    return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One batch that is to become the newest version."""

    query_id: str
    batch_id: int
    interval_ms: int
    now: Mapping[str, pa.Table]
    """Tables as in ``NOW_TABLES``, those that are not written yet."""
    written: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Files that are written for this version already, per table."""
    history: Mapping[str, pa.Table]
    """New rows of ``HISTORY_TABLES``; a table without rows may be absent."""
    at_ms: int | None = None
    """The job's time; None: as the wall clock's."""
    clock_skew_ms: int = 0
    """The wall clock less the job's time, where it is off."""
    watermark_ms: int = 0
    """Up to which time history is complete: by it points are merged, and grow too old."""
    history_files: Mapping[str, Sequence[HistoryFile]] = field(default_factory=dict)
    """Files of history that are written already."""
    memory: Mapping[str, Any] = field(default_factory=dict)
    state_rows: int = 0
    bad_records: int = 0
    bad_values: Sequence[Mapping[str, Any]] = ()
    """Records that could not be read, some of them, to be kept aside."""


class StoreWriter:
    """The only writer of a store; a second one is found out at its next commit."""

    def __init__(
        self,
        store: str,
        *,
        retention_ms: int = RETENTION_MS,
        clock_ms: Callable[[], int] = wall_clock_ms,
        steady_ms: Callable[[], int] = monotonic_ms,
        executor: Executor | None = None,
        on_notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``retention_ms`` is that of fine history, and the least of the coarser spans.

        ``executor`` maintains history; a thread of its own where none is given. ``clock_ms`` only
        names versions and folders; files are swept by ``steady_ms``.
        """
        self.files = StoreFiles(store)
        self.store = store
        self._retentions_ms = {
            span: max(retention_ms, kept_ms if span != FINE else 0)
            for span, kept_ms in RETENTIONS_MS.items()
        }
        self._maintenance = HistoryMaintenance(self.files, executor)
        self._maintenance_due_ms: int | None = None
        self._on_notice = on_notice
        self._clock_ms = clock_ms
        self._steady_ms = steady_ms
        self._sweep = Sweep(self.files, steady_ms=steady_ms, on_notice=on_notice)
        self._pending: int | None = None
        self._threads = ThreadPoolExecutor(WRITERS)
        found = look(self.files, store)
        self._stand_in_place(found.manifest)
        self.files.make_folders(BAD)
        require_put_if_absent(self.files)
        self.manifest: Manifest | None = found.manifest
        self.begun_afresh_because: str | None = None
        """Why an earlier store could not be continued."""
        self._seen = found.value
        """The newest manifest in the store, as it was written or judged."""
        self._claimed: bytes | None = None
        """The version that was put last, whether or not it is in the manifest yet."""
        self._to_set_aside: dict[str, None] = {}
        self._attempted: set[int] = set()
        """Versions whose batches were begun here since the last that was committed."""
        self._take_over(found)

    def _take_over(self, found: ExistingStore) -> None:
        self.manifest, self._seen = found.manifest, found.value
        self._claimed = found.encoded
        self._to_set_aside |= dict.fromkeys(found.set_aside)
        if found.manifest is None:
            self.begun_afresh_because = found.why or self.begun_afresh_because
            return
        self._pending = None
        if found.encoded is not None and found.encoded != found.value:
            self.files.replace(MANIFEST, found.encoded)
            self._seen = found.encoded
        if found.why:
            self._on_notice(f"the metrics store {self.store}: {found.why}")
        if newest_successor(found.set_aside) is not None:
            self._set_aside()  # else it would be taken for another job's

    def _become(self, manifest: Manifest, value: bytes) -> None:
        """Show readers this version, and go on from it."""
        self.files.replace(MANIFEST, value)
        self.manifest, self._seen = manifest, value
        self.begun_afresh_because = None
        self._pending = None
        self._attempted.clear()

    def look_again(self) -> None:
        """Judge the newest version anew, after a batch has failed: its files may be spoilt.

        Raises:
            StoreTakenError: another job has committed since this one last did.
        """
        try:
            if self.manifest is not None and self._is_ours():
                self._stand_in_place(self.manifest)
                self._take_over(look(self.files, self.store, self._attempted))
        except (OSError, StoreUnreadableError) as error:
            self._on_notice(f"the metrics store {self.store} cannot be read now: {error}")

    def check(self) -> None:
        """Look whether the store is still as this job left it; begin afresh where it is gone.

        Raises:
            StoreTakenError: another job has committed since this one last did.
        """
        self._pending = None
        self._sweep.maybe_sweep(self._kept)
        if not self._is_ours():
            found = look(self.files, self.store)
            self._stand_in_place(found.manifest)
            self._take_over(found)
            if self.manifest is None:
                self.begun_afresh_because = self.begun_afresh_because or "its manifest is gone"
            return
        self._stand_in_place(self.manifest)
        if self._claimed is not None and self._claimed != self._seen:
            # Our own, which the manifest could not be replaced by.
            self._become(decode_manifest(self._claimed), self._claimed)

    def _stand_in_place(self, manifest: Manifest | None) -> None:
        """Make the folders that a new store needs; those that hold files of a version must be the
        store's own. One that stands where another disk is to be mounted has neither mark nor file.

        Raises:
            StoreAwayError: one is not.
        """
        named = manifest.paths() if manifest else set()
        for folder in FOLDERS:
            if self.files.is_marked(folder):
                continue
            wanted = {path for path in named if path.startswith(f"{folder}/")}
            if wanted and wanted.isdisjoint(self.files.list_files(folder)):
                raise away(self.store, folder, len(wanted))
            self.files.make_folders(folder, BAD)
            self.files.mark(folder)

    def _is_ours(self) -> bool:
        """Whether this job can go on with what it knows: two would undo each other's history.

        A manifest that was spoilt or lost meanwhile is written again, while its files are there.
        """
        value = self.files.read_bytes(MANIFEST)
        newest = newest_successor(self.files.list_files(COMMITS))
        if self.manifest is not None and newest is not None and newest > self.manifest.version:
            raise _taken(self.store, f"it has written what follows version {newest}")
        if value == self._seen or (value is not None and value == self._claimed):
            return True
        try:
            manifest = None if value is None else decode_manifest(value)
        except ForeignFormatError as error:
            raise _taken(self.store, str(error)) from error
        except ManifestError:
            manifest = None
        if manifest is not None:
            claimed = decode_manifest(self._claimed) if self._claimed is not None else None
            if claimed is not None and manifest.version < claimed.version:
                return True  # of a writer that was overtaken, and has not stopped yet
            why = f"it holds version {manifest.version}, which this job has not written"
            raise _taken(self.store, why)
        if self.manifest is None:
            return False
        there = self.files.list_files("now")
        if not all(path in there for paths in self.manifest.now.values() for path in paths):
            return False
        self._seen = value
        self._on_notice(f"the manifest of {self.store} was lost or spoilt: it is written again")
        return True

    def commit(self, batch: Commit) -> Manifest:
        """Write the batch and make it the newest version.

        Raises:
            StoreTakenError: another job has committed meanwhile.
        """
        version = self.version
        manifest = Manifest(
            version=version,
            written_ms=self._clock_ms() if batch.at_ms is None else batch.at_ms,
            clock_skew_ms=batch.clock_skew_ms,
            query_id=batch.query_id,
            batch_id=batch.batch_id,
            interval_ms=batch.interval_ms,
            now={
                **{
                    table: (write_now(self.files, table, rows, version, "0"),)
                    for table, rows in batch.now.items()
                },
                **batch.written,
            },
            history=self._write_history(batch, version),
            memory=batch.memory,
            state_rows=batch.state_rows,
            bad_records_total=self.bad_records_total + batch.bad_records,
        )
        self._keep_bad(batch.bad_values, version)
        if not self._is_ours():
            raise FileNotFoundError(f"{self.store} was removed while a batch was written to it")
        self._set_aside()
        self._put(manifest)
        self._keep_up(manifest, batch.watermark_ms)
        self._sweep.maybe_sweep(self._kept)
        return manifest

    def _put(self, manifest: Manifest) -> None:
        """Make it the newest version, unless another writer was quicker.

        Raises:
            StoreTakenError: it was.
        """
        before = self.manifest
        make_lasting(self.files, manifest.paths() - (before.paths() if before else set()))
        value = encode_manifest(manifest)
        place = successor_path(before.version if before else 0)
        if not put_if_absent(self.files, place, value):
            raise _taken(self.store, "it has written the version that this job was writing")
        self._claimed = value
        # One that was paused until the successor was swept finds another manifest.
        if not self._is_ours():
            raise FileNotFoundError(f"{self.store} was removed while a batch was written to it")
        self._become(manifest, value)

    @property
    def _kept(self) -> set[str]:
        """Files that are not to be swept."""
        named = self.manifest.paths() if self.manifest else set()
        return {*named, *self._to_set_aside, *self._maintenance.outputs}

    @property
    def bad_records_total(self) -> int:
        return self.manifest.bad_records_total if self.manifest else 0

    @property
    def version(self) -> int:
        """The version that is being written."""
        if self._pending is None:
            previous = self.manifest.version if self.manifest else 0
            self._pending = next_version(previous, self._clock_ms())
            self._attempted.add(self._pending)
        return self._pending

    def _write_history(self, batch: Commit, version: int) -> dict[str, tuple[HistoryFile, ...]]:
        done = self._maintenance.take()
        for it in done:
            if it.problem:
                self._maintenance_due_ms = self._steady_ms() + MAINTENANCE_RETRY_MS
                again = f"it is tried again in {MAINTENANCE_RETRY_MS // 1_000} s"
                self._on_notice(f"{it.task.table} could not be merged: {it.problem}; {again}")
            for path, why in it.damaged.items():
                self._on_notice(f"{path} is left out of history: {why}")
            self._to_set_aside |= dict.fromkeys(it.damaged)
        kept = adopted(self.manifest.history if self.manifest else {}, done)
        history = {
            table: [
                file for file in kept.get(table, ()) if not self._is_over(file, batch.watermark_ms)
            ]
            for table in {**HISTORY_TABLES, **kept}
        }
        for table, files in batch.history_files.items():
            history[table] += files
        fresh = [table for table in HISTORY_TABLES if table in batch.history]
        written = self._threads.map(
            lambda table: write_points(self.files, table, batch.history[table], version, "0"), fresh
        )
        for table, files in zip(fresh, written, strict=True):
            history[table] += files
        return {table: tuple(files) for table, files in history.items()}

    def _is_over(self, file: HistoryFile, watermark_ms: int) -> bool:
        """Whether its time is over; what the next span lacks still is kept as long as that."""
        coarser = COARSER.get(file.span)
        span = file.span if file.is_rolled or coarser is None else coarser
        return file.until_ms < watermark_ms - self._retentions_ms[span]

    def _keep_up(self, manifest: Manifest, watermark_ms: int) -> None:
        """Begin what is due of merging history, unless the last lot is still under way."""
        due_ms = self._maintenance_due_ms
        if not self._maintenance.is_idle or (due_ms is not None and self._steady_ms() < due_ms):
            return
        late_ms = max(LATE_MS, 3 * manifest.interval_ms)
        tasks = due_tasks(manifest.history, watermark_ms, late_ms)
        if tasks:
            self._maintenance.begin(tasks, manifest.version)

    def _keep_bad(self, values: Sequence[Mapping[str, Any]], version: int) -> None:
        if not values:
            return
        lines = "".join(json.dumps(value, default=str) + "\n" for value in values)
        self.files.replace(f"{BAD}/{version}.jsonl", lines.encode())
        for path in self.files.list_files(BAD)[:-BAD_FILES_MAX]:
            self.files.delete(path)

    def _set_aside(self) -> None:
        """Move what is not to be deleted out of the way, and tell where it is."""
        if not self._to_set_aside:
            return
        there = {path for folder in FOLDERS for path in self.files.list_files(folder)}
        # Of one that is gone there is nothing to keep.
        paths = [path for path in self._to_set_aside if path in there or path == MANIFEST]
        if paths:
            now = datetime.fromtimestamp(self._clock_ms() / 1_000, UTC)
            folder = f"{SET_ASIDE}/{now:%Y%m%dT%H%M%SZ}"
            self.files.set_aside(paths, folder)
            if MANIFEST in paths:
                self._seen = None
            self._on_notice(
                f"{len(paths)} files that could not be read now lie in "
                f"{self.store}/{folder} ({paths[0]}, …); delete them when nobody wants them"
            )
        self._to_set_aside = {}


def _taken(store: str, why: str) -> StoreTakenError:
    return StoreTakenError(
        f"the metrics store {store} belongs to another job",
        why=why,
        what_next="Stop one of the two jobs, or give each its own --store",
    )
