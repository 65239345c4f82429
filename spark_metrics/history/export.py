"""Exports history as Delta tables, which DuckDB, Polars, Spark and Trino read with one line.

A table of history becomes a Delta table, partitioned by ``span`` (fine, minute, hour). Its files
are those of the store: linked on the same disk, copied elsewhere. An export commits what came and
went since the one before. It names the version of the store as an application transaction, so an
export of the same version changes nothing.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from pyarrow import fs

from spark_metrics.history.delta_log import (
    PARTITION,
    Action,
    DeltaState,
    commit,
    header,
    make_log,
    read_state,
    write_checkpoint,
)
from spark_metrics.store.durable import make_lasting, require_put_if_absent
from spark_metrics.store.existing import unreadable
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import MANIFEST, HistoryFile, ManifestError, decode_manifest
from spark_metrics.window.errors import ExportError
from spark_metrics.window.history_points import SHAPES

APPLICATION: Final = "partiscope"
REMOVED_KEPT_MS: Final = 3_600_000
"""A file stays so long after a table has lost it: queries of an older version still find it."""
ATTEMPTS: Final = 4
"""How often an export begins again because the job has swept files meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """One Delta table after an export."""

    table: str
    version: int
    files: int
    rows: int
    added: int
    """Files that this export added."""
    removed: int


def export_history(store: str, to: str, *, now_ms: int) -> list[ExportedTable]:
    """Bring the Delta tables in a folder or URL up to the newest version of a store.

    Without a store there are no tables.

    Raises:
        StoreUnreadableError: there is a store, but it cannot be read.
        StoreTakenError: another export writes the same tables.
        ExportError: the tables cannot be read or written.
    """
    source = StoreFiles(store)
    failure: FileNotFoundError | None = None
    for _ in range(ATTEMPTS):
        try:
            value = source.read_bytes(MANIFEST)
            manifest = None if value is None else decode_manifest(value)
        except (ManifestError, OSError) as error:
            raise unreadable(store, error) from error
        if manifest is None:
            return []
        try:
            target = StoreFiles(to)
            require_put_if_absent(target)
            return [
                _Export(source, target, table, now_ms).bring_to(
                    manifest.version, manifest.history.get(table, ())
                )
                for table in SHAPES
            ]
        except FileNotFoundError as error:
            failure = error
        except (OSError, ValueError, KeyError) as error:
            raise ExportError(to, error) from error
    assert failure is not None
    raise unreadable(store, failure) from failure


class _Export:
    """Brings one table up to date."""

    def __init__(self, source: StoreFiles, target: StoreFiles, table: str, now_ms: int) -> None:
        self._source = source
        self._target = target
        self._table = table
        self._now_ms = now_ms

    def bring_to(self, version: int, files: Sequence[HistoryFile]) -> ExportedTable:
        """Commit the files of this version of the store."""
        make_log(self._target, self._table)
        state = read_state(self._target, self._table)
        wanted = {_name(file): file for file in files}
        new = [file for name, file in wanted.items() if name not in state.added]
        gone = [name for name in state.added if name not in wanted]
        metadata = header(state, SHAPES[self._table].schema, self._now_ms)
        if new or gone or metadata:
            paths = [self._bring(file) for file in new]
            make_lasting(self._target, paths)
            actions = [
                *metadata,
                {"txn": {"appId": APPLICATION, "version": version}},
                *(self._added(file) for file in new),
                *(
                    {"remove": {"path": it, "deletionTimestamp": self._now_ms, "dataChange": True}}
                    for it in gone
                ),
            ]
            state = commit(self._target, self._table, state, actions, self._now_ms)
            state = self._without_old(state)
            write_checkpoint(self._target, self._table, state)
        return ExportedTable(
            table=self._table,
            version=state.version,
            files=len(wanted),
            rows=sum(file.rows for file in files),
            added=len(new),
            removed=len(gone),
        )

    def _bring(self, file: HistoryFile) -> str:
        """Link or copy a file, which never changes; its path there."""
        to = f"{self._table}/{_name(file)}"
        whole, there = self._source.absolute(file.path), self._target.absolute(to)
        self._target.make_folders(to.rpartition("/")[0])
        if self._source.is_local and self._target.is_local:
            Path(there).unlink(missing_ok=True)  # of an export that was killed
            try:
                os.link(whole, there)
            except FileNotFoundError:
                raise
            except OSError:  # another disk, or one without links
                fs.copy_files(whole, there)
        else:
            fs.copy_files(
                whole,
                there,
                source_filesystem=self._source.system,
                destination_filesystem=self._target.system,
            )
        return to

    def _added(self, file: HistoryFile) -> Action:
        name = _name(file)
        (info,) = self._target.system.get_file_info(
            [self._target.absolute(f"{self._table}/{name}")]
        )
        stats = {
            "numRecords": file.rows,
            "minValues": {"at_ms": file.from_ms},
            "maxValues": {"at_ms": file.until_ms},
            "nullCount": {"at_ms": 0},
        }
        return {
            "add": {
                "path": name,
                "partitionValues": {PARTITION: file.span},
                "size": info.size,
                "modificationTime": self._now_ms,
                "dataChange": True,
                "stats": json.dumps(stats),
            }
        }

    def _without_old(self, state: DeltaState) -> DeltaState:
        """Delete files that the table has lost long ago."""
        since_ms = self._now_ms - REMOVED_KEPT_MS
        kept = {
            name: told
            for name, told in state.removed.items()
            if told["deletionTimestamp"] > since_ms
        }
        for name in state.removed.keys() - kept.keys():
            self._target.delete(f"{self._table}/{name}")
        return replace(state, removed=kept)


def _name(file: HistoryFile) -> str:
    """The file's path in the table. Polars reads the partition off the folder, others off the
    log."""
    return f"{PARTITION}={file.span}/{PurePosixPath(file.path).name}"
