"""Racks: what each carries, and how far it is from an even share.

A rack's even share follows its brokers: two of five brokers should hold two fifths of the bytes.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from control.views import format as text
from control.views.tables import cells, units
from control.views.tables.brokers import SKEW_HELP, state_away
from control.views.tables.column import Column, Table, column, name_column, worded
from control.views.tables.partitions import (
    IN_HELP,
    LEADERS_HELP,
    OUT_HELP,
    REPLICAS_HELP,
    SIZE_HELP,
)
from control.views.tables.rows import Cell, Row, Tone
from control.views.tables.units import Unit


class _Rack(NamedTuple):
    name: str
    brokers: Sequence[Row]
    even_bytes: float | None
    """What its brokers would hold if all brokers held the same."""


def rack_rows(brokers: Sequence[Row]) -> tuple[Row, ...]:
    """One row per rack, by name; brokers without one are counted under ``–``.

    Worked example: rack a has one broker with 60 bytes, rack b two with 30 each. An even broker
    holds 40; a is at +50 %, b (60 of 80) at -25 %. A broker that does not tell its bytes leaves
    its own rack without a skew; the others are measured against those that tell.
    """
    names = sorted({row.rack.text for row in brokers})
    told = [row.size_bytes for row in brokers if isinstance(row.size_bytes.value, int | float)]
    total = _sum(told)
    racks = []
    for name in names:
        own = [row for row in brokers if row.rack.text == name]
        even = total / len(told) * len(own) if told and total is not None else None
        racks.append(_Rack(name, own, even))
    return RACKS.rows(racks)


def _brokers_cell(rack: _Rack) -> Cell:
    """``2``; ``2, 1 down``."""
    told, count = [str(len(rack.brokers))], len(rack.brokers)
    states = [word for row in rack.brokers if (word := state_away(row))]
    told += [f"{states.count(word)} {word}" for word in dict.fromkeys(states)]
    return Cell(count, ", ".join(told), Tone.CRITICAL if states else Tone.PLAIN)


def _skew_cell(rack: _Rack) -> Cell:
    size = _sum(row.size_bytes for row in rack.brokers)
    if size is None or not rack.even_bytes:
        return cells.UNKNOWN
    return cells.skew_cell((size - rack.even_bytes) / rack.even_bytes * 100.0)


def _summed(id: str, title: str, unit: Unit, help: str, *, rank: int = 3) -> Column:  # noqa: A002
    """A column that sums up that of the rack's brokers."""

    def cell(rack: _Rack) -> Cell:
        return unit.cell(_sum(row.cell(id) for row in rack.brokers))

    return column(id, title, unit, f"{help}; sum over its brokers", rank=rank, cell=cell)


def _sum(found: Iterable[Cell]) -> float | None:
    """None where one of them is unknown: a part is not the sum."""
    values = [cell.value for cell in found]
    if any(not isinstance(value, int | float) for value in values):
        return None
    return float(sum(float(value) for value in values if isinstance(value, int | float)))


RACKS: Final = Table(
    name="racks",
    about="A row per rack, summed up from its brokers",
    key=lambda rack: rack.name,
    path=lambda rack: f"what-if?rack={rack.name}" if rack.name != text.NONE else "brokers",
    columns=(
        name_column("rack", "rack", rank=1, cell=worded(lambda rack: rack.name)),
        column("brokers", "brokers", units.COUNT, "Registered there, and how many are not heard of",
               rank=2, cell=_brokers_cell),
        _summed("replicas", "replicas", units.COUNT, REPLICAS_HELP, rank=2),
        _summed("leaders", "leaders", units.COUNT, LEADERS_HELP, rank=2),
        _summed("size_bytes", "bytes", units.BYTES, SIZE_HELP, rank=1),
        _summed("in_bytes", "in/s", units.BYTE_RATE, IN_HELP, rank=2),
        _summed("out_bytes", "out/s", units.BYTE_RATE, OUT_HELP),
        column("skew", "skew", units.PERCENT, f"{SKEW_HELP}; by its number of brokers", rank=1,
               cell=_skew_cell),
    ),
)  # fmt: skip
