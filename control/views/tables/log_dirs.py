"""The table of log directories: where a broker's replicas lie, and what is free there."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from broker.metrics_schema import LogDirSample
from control.model.disk_rules import directories_of, disk_used_percent
from control.model.finding_rules import Evidence
from control.model.log_dirs import FileSystem, file_systems
from control.views.tables import cells, units
from control.views.tables.column import Table, column, name_column
from control.views.tables.rows import Cell, Row, Tone

Record = Mapping[str, Any]
_STATES: Final = {"open": Tone.PLAIN, "cordoned": Tone.NOTICE, "failed": Tone.CRITICAL}
"""Mildest first."""


def _state_cell(record: Record) -> Cell:
    word = record["state"]
    return Cell(word, word, _STATES[word])


def _shared_cell(record: Record) -> Cell:
    shares = ", ".join(record["shares"])
    return Cell(shares, f"assumed: {shares}") if shares else cells.NOTHING


LOG_DIRS: Final = Table(
    name="log-dirs",
    about="The log directories of one broker, by path",
    key=lambda record: f"{record['broker']} {record['path']}",
    path=lambda record: f"brokers/{record['broker']}",
    columns=(
        name_column("path", "log directory", rank=1),
        column("state", "state", units.TEXT,
               "Cordoned: it receives no new replicas; failed: its broker cannot use it", rank=1,
               cell=_state_cell),
        column("disk", "used", units.PERCENT, "Share of its file system", rank=1,
               source="disk_percent", cell=lambda record: cells.disk_cell(record["disk_percent"])),
        column("usable_bytes", "free", units.BYTES, "Of its file system", rank=1),
        column("total_bytes", "total", units.BYTES, "Of its file system", rank=2),
        column("replicas", "replicas", units.COUNT,
               "Kafka puts a new replica where the fewest are", rank=1),
        column("size_bytes", "bytes", units.BYTES, "Of its replicas", rank=2),
        column("shares", "same file system", units.TEXT,
               "Directories of equal size and equal free bytes, assumed to share one file system",
               rank=2, cell=_shared_cell),
    ),
)  # fmt: skip


def log_dir_rows(evidence: Evidence, broker: int) -> tuple[Row, ...]:
    """Rows of a broker's log directories; empty: not told."""
    return LOG_DIRS.rows(_records(evidence, broker))


def several_log_dirs(evidence: Evidence, broker: int) -> tuple[Row, ...]:
    """The same, where they tell more than the broker's own row: of several, or of a closed one."""
    rows = log_dir_rows(evidence, broker)
    return rows if len(rows) > 1 or any(row.cell("state").text != "open" for row in rows) else ()


def _records(evidence: Evidence, broker: int) -> Iterator[Record]:
    rows = [it for it in evidence.snapshot.brokers.to_pylist() if it["broker"] == broker]
    directories = directories_of(rows[0]) if rows else ()
    of_path = {path: disk for disk in file_systems(directories) for path in disk.paths}
    for directory in directories:
        disk = of_path.get(directory.path)
        state = "cordoned" if directory.is_cordoned else "open"
        yield {
            "broker": broker,
            **_figures(directory, disk),
            "state": "failed" if directory.is_failed else state,
        }


def _figures(directory: LogDirSample, disk: FileSystem | None) -> Record:
    """A failed directory has no figures: they would be of a time before it failed."""
    is_live = disk is not None
    return {
        "path": directory.path,
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
        "disk_percent": disk_used_percent(directory.total_bytes, directory.usable_bytes),
        "replicas": directory.replicas if is_live else None,
        "size_bytes": directory.size_bytes if is_live else None,
        "shares": [it for it in disk.paths if it != directory.path] if disk else [],
    }
