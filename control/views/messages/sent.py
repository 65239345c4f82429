"""Follows sent messages: the segment they lie in, the replicas that have them, who has read them.

All of it is what the snapshot knows, so it changes with every round of figures.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow.compute as pc

from control.messages.produce_progress import ProduceProgress
from control.model.ids import TopicPartition
from control.views.format import NA, plural_text
from control.views.snapshots.snapshot import OperatorSnapshot, partition_record
from control.views.tables import cells, units
from control.views.tables.column import Table, column, name_column
from control.views.tables.rows import Cell, Row, Tone

PARTITIONS_FOLLOWED: Final = 50

Record = Mapping[str, Any]


def _offsets_cell(record: Record) -> Cell:
    first, last = record["first"], record["last"]
    return Cell(first, f"{first:,} – {last:,}" if last > first else f"{first:,}")


def _replicas_cell(record: Record) -> Cell:
    found = [_reached(str(broker), end, record) for broker, end in record["replicas"]]
    return _reached_cell(found, "n/a until the next figures")


def _groups_cell(record: Record) -> Cell:
    found = [_reached(group, committed, record) for group, committed in record["groups"]]
    return _reached_cell(found, "no group reads it")


SENT: Final = Table(
    name="sent",
    about="Where the messages lie that the produce view has sent, by partition",
    key=lambda record: str(record["partition"]),
    path=lambda record: f"browse/{record['topic']}?partition={record['partition']}"
    f"&offset={record['first']}",
    columns=(
        column("partition", "partition", units.COUNT, rank=1),
        column("records", "records", units.COUNT, "Acknowledged there", rank=1),
        column("offsets", "offsets", units.TEXT, "The first and the last of them", rank=1,
               cell=_offsets_cell),
        column("segment", "segment", units.OFFSET,
               "Base offset of the log segment with the first of them", rank=2),
        name_column("replicas", "replicas", "Brokers that have them: ✔ all, or up to an offset",
                    rank=1, cell=_replicas_cell),
        name_column("groups", "groups", "Groups that have read them: ✔ all, or up to an offset",
                    rank=1, cell=_groups_cell),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The messages of one run."""

    topic: str
    ranges: Sequence[tuple[int, int, int, int]]
    """Partition, number of records, first and last offset."""

    @classmethod
    def of(cls, topic: str, progress: ProduceProgress) -> Self:
        """Those that a run has sent so far and whose offsets were acknowledged."""
        found = (
            (number, progress.per_partition[number], first, last)
            for number, (first, last) in sorted(progress.offsets.items())
        )
        return cls(topic=topic, ranges=tuple(found))

    def rows(self, snapshot: OperatorSnapshot) -> tuple[Row, ...]:
        """A row for each partition, at most ``PARTITIONS_FOLLOWED``."""
        return SENT.rows(
            _record(snapshot, TopicPartition(self.topic, number), *told)
            for number, *told in self.ranges[:PARTITIONS_FOLLOWED]
        )

    @property
    def more(self) -> str:
        """How many partitions have no row; empty: none."""
        left = len(self.ranges) - PARTITIONS_FOLLOWED
        return f"and {plural_text(left, 'more partition')}" if left > 0 else ""


def _record(
    snapshot: OperatorSnapshot, name: TopicPartition, records: int, first: int, last: int
) -> dict[str, Any]:
    known = partition_record(snapshot, name)
    bases = (known and known["segment_offsets"]) or ()
    begun = [base for base in bases if base is not None and base <= first]
    return {
        "topic": name.topic,
        "partition": name.partition,
        "records": records,
        "first": first,
        "last": last,
        "segment": max(begun, default=None),
        "replicas": _of(snapshot.cluster.replicas, name, "broker", "log_end_offset"),
        "groups": _of(snapshot.commit_table, name, "group_id", "committed_offset"),
    }


def _of(table: Any, name: TopicPartition, who: str, offset: str) -> list[tuple[Any, int | None]]:
    is_here = pc.and_(
        pc.equal(table["topic"], name.topic), pc.equal(table["partition"], name.partition)
    )
    found = table.select([who, offset]).filter(is_here).to_pylist()
    return sorted((row[who], row[offset]) for row in found)


def _reached(who: str, end: int | None, record: Record) -> tuple[bool, str]:
    """Whether somebody has all, who has everything before ``end``; and in words."""
    if end is None:
        return False, f"{who} {NA}"
    if end > record["last"]:
        return True, f"{who} ✔"
    return False, f"{who} none" if end <= record["first"] else f"{who} to {end - 1:,}"


def _reached_cell(found: Iterable[tuple[bool, str]], missing: str) -> Cell:
    told = list(found)
    if not told:
        return cells.text_cell(missing)
    has_all = all(is_all for is_all, _ in told)
    words = " · ".join(word for _, word in told)
    return Cell(words, words, Tone.FINE if has_all else Tone.PLAIN)
