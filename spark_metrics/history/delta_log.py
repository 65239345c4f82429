"""The log of a Delta table: which files it has, as the protocol of Delta Lake writes it.

```
TABLE/_delta_log/00000000000000000007.json                 what version 7 added and removed
TABLE/_delta_log/00000000000000000007.checkpoint.parquet   all that version 7 has
TABLE/_delta_log/_last_checkpoint                          the newest checkpoint
```
Each version has a checkpoint: whoever opens the table reads one file, and older versions may go.
Protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md (reader 1, writer 2).
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_metrics.store.durable import put_if_absent
from spark_metrics.store.files import StoreFiles
from spark_metrics.window.errors import StoreTakenError

VERSIONS_KEPT: Final = 100
PARTITION: Final = "span"
"""The one column that tables are partitioned by; files do not hold it."""
_FOLDER: Final = "_delta_log"
_CHECKPOINT: Final = ".checkpoint.parquet"
_TYPES: Final = {
    pa.string(): "string",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
}
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_FORMAT: Final = pa.struct({"provider": pa.string(), "options": _TEXTS})
_ACTIONS: Final = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": _FORMAT,
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
            }
        ),
        "remove": pa.struct(
            {"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()}
        ),
    }
)
_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 2}
Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaState:
    """A version of a table; version -1 is before the first."""

    version: int = -1
    metadata: Action | None = None
    transactions: Mapping[str, int] = field(default_factory=dict)
    """The newest transaction that each application committed."""
    added: Mapping[str, Action] = field(default_factory=dict)
    removed: Mapping[str, Action] = field(default_factory=dict)

    def with_actions(self, version: int, actions: Iterable[Action]) -> "DeltaState":
        """The version that these actions make."""
        metadata, transactions = self.metadata, {**self.transactions}
        added, removed = {**self.added}, {**self.removed}
        for action in actions:
            (kind, told), *_ = action.items()
            if kind == "metaData":
                metadata = told
            elif kind == "txn":
                transactions[told["appId"]] = told["version"]
            elif kind == "add":
                added[told["path"]] = told
                removed.pop(told["path"], None)
            elif kind == "remove":
                removed[told["path"]] = told
                added.pop(told["path"], None)
        return replace(
            self,
            version=version,
            metadata=metadata,
            transactions=transactions,
            added=added,
            removed=removed,
        )

    def actions(self) -> list[Action]:
        """All that a checkpoint says."""
        return [
            {"protocol": _PROTOCOL},
            {"metaData": self.metadata},
            *({"txn": {"appId": it, "version": at}} for it, at in self.transactions.items()),
            *({"add": it} for it in self.added.values()),
            *({"remove": it} for it in self.removed.values()),
        ]


def header(state: DeltaState, schema: Any, now_ms: int) -> list[Action]:
    """Actions that tell the schema, where it is not told or another one is."""
    fields = [(item.name, _TYPES[item.type]) for item in schema]
    text = json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": of, "nullable": True, "metadata": {}}
                for name, of in [*fields, (PARTITION, "string")]
            ],
        }
    )
    if state.metadata is not None and state.metadata["schemaString"] == text:
        return []
    identity = state.metadata or {"id": str(uuid.uuid4()), "createdTime": now_ms}
    metadata = {
        **identity,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": text,
        "partitionColumns": [PARTITION],
        "configuration": {},
    }
    return [{"protocol": _PROTOCOL}, {"metaData": metadata}]


def read_state(files: StoreFiles, table: str) -> DeltaState:
    """The newest version of a table.

    Raises:
        OSError, ValueError, KeyError: the log cannot be read, or is of another writer.
    """
    paths = files.list_files(f"{table}/{_FOLDER}")
    state = DeltaState()
    checkpoints = [path for path in paths if path.endswith(_CHECKPOINT)]
    if checkpoints:
        with files.open(checkpoints[-1]) as source:
            rows = pq.ParquetFile(source).read(columns=_ACTIONS.names)
        actions = [_told(row) for row in rows.to_pylist(maps_as_pydicts="strict")]
        state = state.with_actions(_version_of(checkpoints[-1]), actions)
    # A writer that was killed has left a version without its checkpoint.
    for path in paths:
        if path.endswith(".json") and _version_of(path) > state.version:
            lines = (files.read_bytes(path) or b"").splitlines()
            state = state.with_actions(_version_of(path), map(json.loads, lines))
    return state


def commit(
    files: StoreFiles, table: str, state: DeltaState, actions: Sequence[Action], now_ms: int
) -> DeltaState:
    """Write the next version and its checkpoint.

    Raises:
        StoreTakenError: another writer has written that version.
    """
    version = state.version + 1
    info: Action = {"commitInfo": {"timestamp": now_ms, "operation": "WRITE"}}
    value = "".join(json.dumps(it, separators=(",", ":")) + "\n" for it in (info, *actions))
    if not put_if_absent(files, _path(table, version, ".json"), value.encode()):
        raise StoreTakenError(
            f"{files.absolute(table)} is written by another export",
            why=f"it has written version {version}",
            what_next="Wait until it is done, or give each export a folder of its own",
        )
    return state.with_actions(version, actions)


def write_checkpoint(files: StoreFiles, table: str, state: DeltaState) -> None:
    """Tell all that this version has in one file, and drop versions that are too old."""
    rows = [_flat(it) for it in state.actions()]
    stream = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_ACTIONS), stream)
    files.replace(_path(table, state.version, _CHECKPOINT), stream.getvalue().to_pybytes())
    newest = {"version": state.version, "size": len(rows)}
    files.replace(f"{table}/{_FOLDER}/_last_checkpoint", json.dumps(newest).encode())
    for path in files.list_files(f"{table}/{_FOLDER}"):
        stem = PurePosixPath(path).name.partition(".")[0]
        if stem.isdecimal() and int(stem) <= state.version - VERSIONS_KEPT:
            files.delete(path)


def make_log(files: StoreFiles, table: str) -> None:
    """The folder of a table and its log."""
    files.make_folders(f"{table}/{_FOLDER}")


def _path(table: str, version: int, end: str) -> str:
    return f"{table}/{_FOLDER}/{version:020}{end}"


def _version_of(path: str) -> int:
    return int(PurePosixPath(path).name.partition(".")[0])


def _told(row: Action) -> Action:
    """The one action of a row of a checkpoint."""
    return {kind: told for kind, told in row.items() if told is not None}


def _flat(action: Action) -> Action:
    """The same, maps as Arrow takes them."""

    def flat(value: Any, of: Any) -> Any:
        if pa.types.is_map(of):
            return list(value.items())
        if pa.types.is_struct(of):
            return {
                item.name: flat(value[item.name], item.type) for item in of if item.name in value
            }
        return value

    return {kind: flat(told, _ACTIONS.field(kind).type) for kind, told in action.items()}
