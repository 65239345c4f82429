"""Racks: what each carries, and how far it is from an even share.

A rack's even share follows its brokers: two of five brokers should hold two fifths of the bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from control.model.health import SKEW_PERCENT_MAX
from control.views import format as text
from control.views.tables import row_builders
from control.views.tables.column import Column
from control.views.tables.rows import BrokerRow, Cell, Row, Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class RackRow(Row):
    """A rack, summed up from its brokers."""

    rack: Cell
    brokers: Cell
    replicas: Cell
    leaders: Cell
    size_bytes: Cell
    in_bytes: Cell
    out_bytes: Cell
    skew: Cell
    """Of bytes, against the share that its brokers would hold if all held the same."""


RACK_COLUMNS: Final = (
    Column(id="rack", title="rack", is_number=False, rank=1, is_long=True),
    Column(id="brokers", title="brokers", why="Registered there", rank=2),
    Column(id="replicas", title="replicas", rank=2),
    Column(id="leaders", title="leaders", rank=2),
    Column(id="size_bytes", title="bytes", why="Bytes of the .log files on disk", rank=1),
    Column(
        id="in_bytes",
        title="in/s",
        why="Bytes per second of the partitions that its brokers lead",
        rank=2,
    ),
    Column(
        id="out_bytes",
        title="out/s",
        why="Bytes per second of the partitions that its brokers lead",
    ),
    Column(id="skew", title="skew", why="Bytes against the even share of its brokers", rank=1),
)


def rack_rows(brokers: Sequence[BrokerRow]) -> tuple[RackRow, ...]:
    """One row per rack, by name; brokers without one are counted under ``–``.

    Worked example: rack a has one broker with 60 bytes, rack b two with 30 each. An even broker
    holds 40; a is at +50 %, b (60 of 80) at -25 %. A broker that does not tell its bytes leaves
    its own rack without a skew; the others are measured against those that tell.
    """
    names = sorted({row.rack.text for row in brokers})
    told = [row.size_bytes for row in brokers if isinstance(row.size_bytes.value, int | float)]
    total = _sum(told)
    rows = []
    for name in names:
        own = [row for row in brokers if row.rack.text == name]
        even = total / len(told) * len(own) if told and total is not None else None
        rows.append(_row(name, own, even))
    return tuple(rows)


def _row(name: str, own: Sequence[BrokerRow], even_bytes: float | None) -> RackRow:
    size = _sum(row.size_bytes for row in own)
    return RackRow(
        key=name,
        path=f"what-if?rack={name}" if name != text.NONE else "brokers",
        rack=Cell(name, name),
        brokers=row_builders.count_cell(len(own)),
        replicas=row_builders.count_cell(_sum(row.replicas for row in own)),
        leaders=row_builders.count_cell(_sum(row.leaders for row in own)),
        size_bytes=row_builders.bytes_cell(size),
        in_bytes=row_builders.byte_rate_cell(_sum(row.in_bytes for row in own)),
        out_bytes=row_builders.byte_rate_cell(_sum(row.out_bytes for row in own)),
        skew=_skew_cell(size, even_bytes),
    )


def _skew_cell(size: float | None, even: float | None) -> Cell:
    if size is None or not even:
        return Cell(None, text.NA, Tone.MUTED)
    percent = (size - even) / even * 100.0
    tone = Tone.WARNING if abs(percent) > SKEW_PERCENT_MAX else Tone.PLAIN
    return Cell(percent, text.signed_percent_text(percent), tone)


def _sum(found: Iterable[Cell]) -> float | None:
    """None where one of them is unknown: a part is not the sum."""
    values = [cell.value for cell in found]
    if any(not isinstance(value, int | float) for value in values):
        return None
    return float(sum(float(value) for value in values if isinstance(value, int | float)))
