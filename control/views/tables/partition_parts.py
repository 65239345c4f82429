"""The small tables of one partition: its replicas and its newest segments."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from control.views.tables import cells, units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.partitions import AGE_HELP, SEGMENTS_HELP, SIZE_HELP, partition_path
from control.views.tables.rows import Cell, Row, Tone

Record = Mapping[str, Any]


def _role_cell(record: Record) -> Cell:
    role = "leader" if record["is_leader"] else "follower"
    return Cell(role, f"{cells.STAR if record['is_preferred'] else ''}{role}")


def _in_sync_cell(record: Record) -> Cell:
    if record["is_in_sync"]:
        return Cell(1, "in sync", Tone.FINE)
    return Cell(0, "out of sync", Tone.WARNING)


def _behind_cell(record: Record) -> Cell:
    return cells.count_cell(0 if record["is_leader"] else record["follower_lag"])


def _state_cell(record: Record) -> Cell:
    is_active = record["is_active"]
    return Cell(int(is_active), "active" if is_active else "closed")


REPLICAS: Final = Table(
    name="replicas",
    about="The replicas of one partition, in assignment order",
    key=lambda record: str(record["broker"]),
    path=lambda record: f"brokers/{record['broker']}",
    columns=(
        column("broker", "broker", units.TEXT, rank=1, cell=lambda it: cells.id_cell(it["broker"])),
        name_column("rack", "rack", cell=worded(lambda it: it["rack"])),
        column("role", "role", units.TEXT, "Leader or follower; ★ preferred leader", rank=1,
               cell=_role_cell),
        column("in_sync", "in sync", units.TEXT, rank=1, cell=_in_sync_cell),
        column("follower_lag", "behind", units.COUNT, "Records behind the leader", rank=2,
               cell=_behind_cell),
        column("log_end_offset", "end offset", units.OFFSET),
        column("size_bytes", "bytes", units.BYTES, SIZE_HELP, rank=1),
        column("segments", "segments", units.COUNT, SEGMENTS_HELP, rank=2),
        column("age", "age", units.AGE, f"{AGE_HELP}; by its broker", source="age_ms"),
    ),
)  # fmt: skip
SEGMENTS: Final = Table(
    name="segments",
    about="The newest log segments of a partition's leader, oldest first",
    key=lambda record: str(record["number"]),
    path=lambda record: f"{partition_path(record)}/segments",
    columns=(
        column("number", "segment", units.COUNT, "Oldest first", rank=1),
        column("base_offset", "base offset", units.OFFSET, rank=1),
        column("size_bytes", "bytes", units.BYTES, SIZE_HELP, rank=1),
        column("state", "state", units.TEXT, "The newest is active: it is written to", rank=1,
               cell=_state_cell),
    ),
)  # fmt: skip


def segment_rows(record: Record) -> tuple[Row, ...]:
    """Rows of a partition's newest segments, oldest first. Empty when unknown."""
    return SEGMENTS.rows(_segments(record))


def _segments(record: Record) -> Iterator[Record]:
    sizes: Sequence[int] = record["segment_bytes"] or ()
    offsets: Sequence[int | None] = record["segment_offsets"] or [None] * len(sizes)
    total = record["segments"] or len(sizes)
    first = total - len(sizes) + 1
    for number, (size, base) in enumerate(zip(sizes, offsets, strict=True), start=first):
        yield {
            **record,
            "number": number,
            "base_offset": base,
            "size_bytes": size,
            "is_active": number == total,
        }
