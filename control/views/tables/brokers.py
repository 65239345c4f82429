"""The tables of brokers and of their log directories: what the store says of each."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.metrics_schema import LogDirSample
from control.model.columns import FloatColumn, floats
from control.model.disk_rules import (
    directories_of,
    disk_used_percent,
    disks_of,
    fullest_percent,
    is_cordoned,
    room_bytes,
)
from control.model.finding_rules import Evidence
from control.model.load import BrokerLoads
from control.model.log_dirs import FileSystem, file_systems
from control.model.status import BROKER_SEVERITIES
from control.views import format as text
from control.views.tables import arrow, cells, units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.filters import FieldKind, FilterField
from control.views.tables.partitions import (
    AGE_HELP,
    IN_HELP,
    LEADERS_HELP,
    OUT_HELP,
    REPLICAS_HELP,
    SIZE_HELP,
)
from control.views.tables.rows import TONE_OF, Cell, Row, Tone
from spark_metrics.window.totals import stands_for_all

_KEPT: Final = ("broker", "host", "port", "rack", "is_fenced", "is_controller", "interval_ms")
_SINCE: Final = {"fenced": "down", "silent": "silent"}
"""Statuses that tell since when, in the words of a row."""
SKEW_HELP: Final = "Bytes against an even share"
OF_LED: Final = "; of the partitions that it leads"
Record = Mapping[str, Any]


def controller_cell(record: Record) -> Cell:
    """A broker's id, with a star when it is the active controller."""
    broker = record["broker"]
    return Cell(broker, f"{cells.STAR if record['is_controller'] else ''}{broker}")


def _status_cell(record: Record) -> Cell:
    """Whether a broker is alive, or since when it is not, sorted by how bad it is."""
    word, age_ms = str(record["status"]), record["age_ms"]
    told = _SINCE.get(word, word)
    if word in _SINCE and age_ms is not None:
        now_ms = record["sampled_ms"] + age_ms
        told = f"{told} since {text.clock_text(record['sampled_ms'], now_ms=now_ms)}"
    return Cell(list(BROKER_SEVERITIES).index(word), told, TONE_OF[BROKER_SEVERITIES[word]])


def state_away(row: Row) -> str:
    """``down`` or ``silent``; empty: the broker of this row is heard of."""
    word = row.status.text.partition(" ")[0]
    return word if word in _SINCE.values() else ""


def _size_cell(record: Record) -> Cell:
    def bytes_cell(value: float | None) -> Cell:
        return cells.bytes_cell(value, estimated=record["is_estimated"])

    return cells.sum_cell(record["size_bytes"], record["known_bytes"], bytes_cell)


BROKERS: Final = Table(
    name="brokers",
    about="A row per registered broker, by id",
    key=lambda record: str(record["broker"]),
    path=lambda record: f"brokers/{record['broker']}",
    searched="name",
    example="disk>80 rack:a",
    columns=(
        column("broker", "broker", units.TEXT,
               "★ the active controller", rank=1, cell=controller_cell,
               filter="broker", filter_on=FilterField("broker", FieldKind.NUMBER)),
        column("status", "status", units.TEXT, "Down: the controller has fenced it (status:fenced)",
               rank=1, sort="status_rank", cell=_status_cell, filter="status"),
        name_column("rack", "rack", filter="rack", cell=worded(lambda record: record["rack"])),
        column("replicas", "replicas", units.COUNT, REPLICAS_HELP, rank=2,
               filter="replicas"),
        column("leaders", "leaders", units.COUNT,
               LEADERS_HELP, rank=2, filter="leaders"),
        column("size_bytes", "bytes", units.BYTES, f"{SIZE_HELP}; of its replicas", rank=1,
               cell=_size_cell,
               filter="size bytes"),
        column("in_bytes", "in/s", units.BYTE_RATE, f"{IN_HELP}{OF_LED}", rank=2,
               source="in_bytes_per_s", filter="in"),
        column("out_bytes", "out/s", units.BYTE_RATE,
               f"{OUT_HELP}{OF_LED}", source="out_bytes_per_s", filter="out"),
        column("skew", "skew", units.PERCENT,
               f"{SKEW_HELP}; of all brokers that tell theirs, n/a while it is down", rank=2,
               source="skew_percent", filter="skew",
               cell=lambda record: cells.skew_cell(record["skew_percent"])),
        column("disk", "disk", units.PERCENT,
               "Used share of its fullest disk; failed log directories are left out",
               source="disk_percent", filter="disk",
               cell=lambda record: cells.disk_cell(record["disk_percent"])),
        column("full_in", "full in", units.DURATION,
               "At the earliest, as fast as now and without retention", rank=2, source="full_ms",
               cell=lambda record: cells.full_cell(record["full_ms"]), filter="full",
               is_time_left=True),
        column("age", "age", units.AGE, f"{AGE_HELP}; by itself", source="age_ms"),
    ),
)  # fmt: skip


def broker_table(evidence: Evidence) -> pa.Table:
    """One row per registered broker, by id.

    Loads are counted from the assignment (so that a planned one can be shown beside the present
    one); disk and age come from the broker's own samples.
    """
    store = evidence.snapshot.brokers.sort_by("broker").combine_chunks()
    disks = [disks_of(row) for row in store.to_pylist()]
    columns = {name: store[name] for name in _KEPT}
    statuses = _statuses(store, evidence.freshness.silent)
    is_down = np.isin(store["broker"].to_numpy(), sorted(evidence.freshness.down))
    full_ms = _full_ms(evidence, np.array([*map(room_bytes, disks)], np.float64))
    skews = evidence.loads.skew_percent("size_bytes")
    columns |= {
        "name": pa.array([f"broker {item}" for item in store["broker"].to_pylist()], pa.string()),
        "status": statuses,
        "status_rank": pc.index_in(statuses, pa.array(list(BROKER_SEVERITIES))),
        "disk_total_bytes": store["disk_total_bytes"],
        "disk_percent": pa.array(map(fullest_percent, disks), pa.float64()),
        "age_ms": arrow.nullable(np.maximum(evidence.now_ms - floats(store["sampled_ms"]), 0.0)),
        "sampled_ms": store["sampled_ms"],
        **load_columns(evidence.loads),
        "skew_percent": arrow.nullable(np.where(is_down, np.nan, skews)),
        "full_ms": arrow.nullable(np.where(is_down, np.nan, full_ms)),
    }
    return pa.table(columns)


def _statuses(store: pa.Table, silent: frozenset[int]) -> pa.Array:
    known = store.select(["broker", "host", "is_fenced", "directories"]).to_pylist()
    return pa.array([_status(row, silent) for row in known], pa.string())


def _status(row: Record, silent: frozenset[int]) -> str:
    if row["is_fenced"]:
        return "fenced"
    if not row["host"]:
        return "no address"
    directories = directories_of(row)
    if any(it.is_failed for it in directories):
        return "disk failed"
    if row["broker"] in silent:
        return "silent"
    return "cordoned" if is_cordoned(directories) else "alive"


def _full_ms(evidence: Evidence, usable: FloatColumn) -> FloatColumn:
    """When the first disk of each broker is full at the earliest: what is free over what is written
    to its replicas. Retention, which makes room meanwhile, is not counted. Unknown while
    too few of its replicas' rates are known."""
    placed, brokers = evidence.placement, evidence.loads.brokers
    is_here = np.isin(placed.broker, brokers)
    rates = floats(evidence.snapshot.partitions["in_bytes_per_s"])[placed.row][is_here]
    place, count = np.searchsorted(brokers, placed.broker[is_here]), len(brokers)
    written = np.bincount(place, weights=np.nan_to_num(rates), minlength=count)
    told = np.bincount(place, weights=~np.isnan(rates), minlength=count)
    is_known = stands_for_all(told, np.bincount(place, minlength=count))
    with np.errstate(divide="ignore", invalid="ignore"):
        left_ms = np.where(
            usable > 0, usable / written * 1000.0, np.where(usable == 0, 0.0, np.nan)
        )
    return np.where(is_known, left_ms, np.nan)


def load_columns(loads: BrokerLoads) -> dict[str, pa.Array]:
    """The loads as columns, in order of broker ids."""
    return {
        "replicas": arrow.nullable(loads.replicas),
        "leaders": arrow.nullable(loads.leaders),
        "size_bytes": arrow.nullable(loads.size_bytes),
        "known_bytes": arrow.nullable(loads.known_bytes),
        "is_estimated": pa.array(loads.is_estimated),
        "in_bytes_per_s": arrow.nullable(loads.in_bytes_per_s),
        "out_bytes_per_s": arrow.nullable(loads.out_bytes_per_s),
        "skew_percent": arrow.nullable(loads.skew_percent("size_bytes")),
    }


_STATES: Final = {"failed": Tone.CRITICAL, "cordoned": Tone.NOTICE, "open": Tone.PLAIN}
"""Worst first."""


def _state_cell(record: Record) -> Cell:
    word = record["state"]
    return Cell(list(_STATES).index(word), word, _STATES[word])


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
               f"{REPLICAS_HELP}; Kafka puts a new one where the fewest are", rank=1),
        column("size_bytes", "bytes", units.BYTES, f"{SIZE_HELP}; of its replicas", rank=2),
        column("shares", "same file system", units.TEXT,
               "Directories of equal size and equal free bytes, assumed to share one file system",
               rank=2, cell=_shared_cell),
    ),
)  # fmt: skip


def log_dir_rows(evidence: Evidence, broker: int) -> tuple[Row, ...]:
    """Rows of a broker's log directories; empty: not told."""
    return LOG_DIRS.rows(_log_dir_records(evidence, broker))


def several_log_dirs(evidence: Evidence, broker: int) -> tuple[Row, ...]:
    """The same, where they tell more than the broker's own row: of several, or of a closed one."""
    rows = log_dir_rows(evidence, broker)
    return rows if len(rows) > 1 or any(row.cell("state").text != "open" for row in rows) else ()


def _log_dir_records(evidence: Evidence, broker: int) -> Iterator[Record]:
    rows = [it for it in evidence.snapshot.brokers.to_pylist() if it["broker"] == broker]
    directories = directories_of(rows[0]) if rows else ()
    of_path = {path: disk for disk in file_systems(directories) for path in disk.paths}
    for directory in directories:
        disk = of_path.get(directory.path)
        state = "cordoned" if directory.is_cordoned else "open"
        yield {
            "broker": broker,
            **_log_dir_figures(directory, disk),
            "state": "failed" if directory.is_failed else state,
        }


def _log_dir_figures(directory: LogDirSample, disk: FileSystem | None) -> Record:
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
