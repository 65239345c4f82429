"""The table of partitions: a row per partition, as its leader sees it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import (
    BoolColumn,
    FloatColumn,
    IntColumn,
    codes,
    floats,
    ints,
    list_lengths,
)
from control.model.finding_rules import Evidence
from control.model.isr_age import places_in
from control.model.status import NOT_KNOWN, PARTITION_SEVERITIES, preferred_leaders, words_of
from control.views import format as text
from control.views.tables import arrow, cells, units
from control.views.tables.column import Column, Table, column, name_column
from control.views.tables.filters import FieldKind, FilterField
from control.views.tables.rows import Cell, Tone
from control.views.tables.units import Unit
from spark_metrics.window.totals import aggregated, has_lag

STATUSES: Final = FilterField("statuses", FieldKind.WORDS)
"""Filters find any status that applies, not only the worst."""
SIZE_HELP: Final = "Bytes of the .log files on disk"
REPLICAS_HELP: Final = "Assigned replicas, in sync or not"
LEADERS_HELP: Final = "Partitions that it leads"
PARTITIONS_HELP: Final = "Number of partitions"
GROUPS_HELP: Final = "Groups that committed an offset in it"
SEGMENTS_HELP: Final = "Log segments"
AGE_HELP: Final = "Since its figures were read"
IN_HELP: Final = "Bytes per second that producers append"
OUT_HELP: Final = "Bytes per second that consumers read"
RECORDS_HELP: Final = "Records per second that producers append"
MAX_LAG_HELP: Final = "Lag of the group that lags most there; ≥ while that of some group is unknown"

Record = Mapping[str, Any]


def _is_old(record: Record) -> bool:
    """No leader of it is heard of: its figures are the last known ones."""
    return record["status"] in ("offline", NOT_KNOWN)


def _last_known(unit: Unit, source: str) -> Callable[[Record], Cell]:
    """Cells of figures that are muted once nobody tells newer ones."""

    def cell(record: Record) -> Cell:
        told = unit.cell(record[source])
        return replace(told, tone=Tone.MUTED) if _is_old(record) else told

    return cell


def _last_read(id: str, title: str, unit: Unit, help: str, **more: Any) -> Column:  # noqa: A002
    return column(id, title, unit, help, cell=_last_known(unit, id), **more)


def _leader_cell(record: Record) -> Cell:
    return cells.leader_cell(record["leader"], is_preferred=record["is_preferred"])


def _isr_cell(record: Record) -> Cell:
    """``3/3``, and which are missing: ``2/3 (−103)``."""
    isr: Sequence[int] = record["isr"]
    replicas: Sequence[int] = record["replicas"]
    missing = [item for item in replicas if item not in isr]
    lacks = f" ({', '.join(f'{text.MINUS}{item}' for item in missing)})" if missing else ""
    tone = Tone.WARNING if missing else Tone.PLAIN
    return Cell(text.ids_text(isr), f"{len(isr)}/{len(replicas)}{lacks}", tone)


def _isr_short_cell(record: Record) -> Cell:
    return cells.isr_short_cell(record["isr_short_ms"], is_at_least=record["is_at_least"])


def max_lag_cell(record: Record) -> Cell:
    """The max lag of a partition or topic; – where no group has a commit within the log."""
    if not record["lags"]:
        return cells.NOTHING
    return cells.sum_cell(record["max_lag"], record["known_lag"], cells.count_cell)


def _age_cell(record: Record) -> Cell:
    age = cells.age_cell(record["age_ms"])
    return replace(age, tone=Tone.WARNING) if _is_old(record) else age


def partition_path(record: Record) -> str:
    """The view of a record's partition."""
    return f"topics/{record['topic']}/partitions/{record['partition']}"


PARTITIONS: Final = Table(
    name="partitions",
    named_by=2,
    about="A row per partition, as its leader sees it",
    key=lambda record: record["name"],
    path=partition_path,
    searched="name",
    example="lag>10000 broker:102 status:under-replicated",
    columns=(
        name_column("topic", "topic", rank=1, filter="topic"),
        column("partition", "partition", units.ID, rank=1, filter="partition"),
        column("status", "status", units.TEXT, "The worst that applies", rank=1, sort="judged_rank",
               cell=lambda record: cells.status_cell(record["status"]),
               filter="status", filter_on=STATUSES),
        column("leader", "leader", units.ID, "★ the preferred one", rank=2, sort="led_by",
               cell=_leader_cell, filter="leader"),
        column("replicas", "replicas", units.IDS,
               "In assignment order: the first is preferred", rank=2,
               sort="replica_count", filter="broker replica"),
        column("isr", "ISR", units.IDS, "Replicas in sync", sort="isr_count", cell=_isr_cell,
               filter="isr"),
        _last_read("size_bytes", "log bytes", units.BYTES,
                   "Bytes of the .log files of the leader's replica", rank=2,
                   filter="size bytes"),
        _last_read("records", "records", units.COUNT, "High watermark less log start offset",
                   filter="records"),
        _last_read("segments", "segments", units.COUNT, f"{SEGMENTS_HELP}; of the leader's replica",
                   filter="segments"),
        column("in_records", "records/s", units.RECORD_RATE, RECORDS_HELP, rank=2,
               source="in_records_per_s", filter="rate"),
        column("in_bytes", "in/s", units.BYTE_RATE, IN_HELP, source="in_bytes_per_s", filter="in"),
        column("out_bytes", "out/s", units.BYTE_RATE,
               OUT_HELP, source="out_bytes_per_s", filter="out"),
        column("max_lag", "max lag", units.COUNT, MAX_LAG_HELP, rank=1, cell=max_lag_cell,
               filter="lag max_lag"),
        _last_read("log_start_offset", "start", units.OFFSET, "Log start offset",
                   filter="start"),
        _last_read("high_watermark", "high watermark", units.OFFSET, "Consumers read below it",
                   filter="end"),
        column("age", "age", units.AGE,
               f"{AGE_HELP}; by its leader, if offline the last known ones",
               source="age_ms", cell=_age_cell),
    ),
    unlisted=(
        column("isr_short", "ISR short for", units.DURATION, "How long a replica has been missing",
               source="isr_short_ms", cell=_isr_short_cell, filter="short", is_exception=True),
        column("groups", "groups", units.COUNT, GROUPS_HELP, filter="groups"),
    ),
)  # fmt: skip


def partition_table(evidence: Evidence, short_isr: pa.Table) -> pa.Table:
    """One row per partition, by name; ``short_isr`` as ``control.model.isr_age`` makes it.

    Adds to the store's columns: name, status, statuses (all words that apply), rank (of the
    status, 0 worst), judged_rank and arrow.led_by (to sort by: null where unknown), is_preferred,
    isr_short_ms (for how long the ISR is short; null: it is
    whole), is_at_least (it may be short for longer), records, all_bytes (of all replicas; null: of
    some it is unknown), known_bytes (of the others), age_ms (of its leader's figures),
    and those of ``max_lags``.
    """
    store = evidence.snapshot.partitions
    ranks = evidence.statuses.ranks()
    words = words_of(ranks, PARTITION_SEVERITIES)
    short_ms, is_at_least = _isr_short(evidence, short_isr)
    leader = ints(store["leader"])
    added = {
        "name": arrow.partition_names(store),
        "status": words,
        "statuses": evidence.statuses.words(),
        "rank": pa.array(ranks, pa.int32()),
        "is_preferred": pa.array((leader < 0) | (leader == preferred_leaders(store))),
        "judged_rank": arrow.judged_ranks(ranks, words),
        "led_by": arrow.led_by(ints(store["leader"], unknown=-1)),
        "replica_count": pa.array(list_lengths(store["replicas"])),
        "isr_count": pa.array(list_lengths(store["isr"])),
        "isr_short_ms": arrow.nullable(short_ms),
        "is_at_least": pa.array(is_at_least),
        "records": pc.subtract(store["high_watermark"], store["log_start_offset"]),
        **_bytes_of_all_replicas(evidence),
        **max_lags(evidence.snapshot.commits, evidence.snapshot.commit_places, store.num_rows),
        "age_ms": arrow.nullable(np.maximum(evidence.now_ms - floats(store["read_ms"]), 0.0)),
    }
    return arrow.sorted_by(arrow.with_columns(store, added), [arrow.INTERNAL, "topic", "partition"])


def max_lags(commits: pa.Table, places: IntColumn, rows: int) -> dict[str, pa.Array]:
    """Columns of so many rows: ``groups`` with a commit there, ``lags`` (groups with a lag),
    ``max_lag`` (the greatest of one group; null: one of them is unknown) and ``known_lag`` (of
    the others). ``places``: the row that each commit (of the store) is about, -1: none."""
    inside = has_lag(commits)
    each = pa.table(
        {
            "row": pa.array(places),
            "group": pa.array(codes(commits["group_id"])[0]),
            "committed": commits["committed_offset"],
            "parts": inside,
            "lag": pc.if_else(inside, commits["lag"], None),
        }
    ).filter(pc.field("row") >= 0)
    wanted = [("committed", "count"), ("parts", "sum"), ("lag", "count"), ("lag", "sum")]
    each = aggregated(each, ["row", "group"], wanted)
    told, parts = each["lag_count"], pc.cast(each["parts_sum"], pa.int64())
    of_groups = pa.table(
        {
            "row": each["row"],
            "groups": pc.cast(pc.greater(each["committed_count"], 0), pa.int64()),
            "lags": pc.cast(pc.greater(parts, 0), pa.int64()),
            "known": pc.if_else(pc.greater(told, 0), each["lag_sum"], None),
            "is_open": pc.less(told, parts),
        }
    )
    worst = of_groups.group_by("row").aggregate(
        [("groups", "sum"), ("lags", "sum"), ("known", "max"), ("is_open", "any")]
    )
    place = np.full(rows, -1)
    place[ints(worst["row"])] = np.arange(worst.num_rows)
    found = worst.take(pa.array(place, mask=place < 0)).combine_chunks()
    is_open = pc.fill_null(found["is_open_any"], False)
    return {
        "groups": pc.fill_null(found["groups_sum"], 0),
        "lags": pc.fill_null(found["lags_sum"], 0),
        "max_lag": pc.if_else(is_open, None, found["known_max"]),
        "known_lag": found["known_max"],
    }


def _isr_short(evidence: Evidence, short: pa.Table) -> tuple[FloatColumn, BoolColumn]:
    """For how long each ISR is short (NaN: it is whole), and whether it may be so for longer."""
    place = places_in(short, evidence.snapshot.partitions)
    since = np.append(floats(short["since_ms"]), np.nan)[place]
    at_least = np.append(np.asarray(short["is_at_least"], dtype=np.bool_), False)[place]
    # A second at the least: it is short, if only since now.
    return np.maximum(evidence.now_ms - since, 1000.0), at_least


def _bytes_of_all_replicas(evidence: Evidence) -> dict[str, pa.Array]:
    """Columns ``all_bytes`` and ``known_bytes``."""
    placed, rows = evidence.placement, evidence.snapshot.partitions.num_rows
    known = ~np.isnan(placed.size_bytes)
    total = np.bincount(placed.row[known], weights=placed.size_bytes[known], minlength=rows)
    told = np.bincount(placed.row[known], minlength=rows)
    is_whole = (told > 0) & (told == np.bincount(placed.row, minlength=rows))
    return {
        "all_bytes": arrow.nullable(np.where(is_whole, total, np.nan)),
        "known_bytes": arrow.nullable(np.where(told > 0, total, np.nan)),
    }
