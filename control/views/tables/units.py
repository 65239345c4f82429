"""Units of columns: how their values are written, compared in filters and aligned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from control.views.tables import cells
from control.views.tables.filters import FieldKind
from control.views.tables.rows import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The kind of a column's values: their unit in words, how they are written and compared."""

    name: str
    cell: Callable[[Any], Cell]
    kind: FieldKind = FieldKind.NUMBER
    is_number: bool = True


TEXT: Final = Unit(name="text", cell=cells.text_cell, kind=FieldKind.TEXT, is_number=False)
IDS: Final = Unit(name="ids", cell=cells.ids_cell, kind=FieldKind.IDS, is_number=False)
ID: Final = Unit(name="id", cell=cells.id_cell)
COUNT: Final = Unit(name="count", cell=cells.count_cell)
OFFSET: Final = Unit(name="offset", cell=cells.count_cell)
BYTES: Final = Unit(name="bytes", cell=cells.bytes_cell)
BYTE_RATE: Final = Unit(name="bytes per second", cell=cells.byte_rate_cell)
RECORD_RATE: Final = Unit(name="records per second", cell=cells.record_rate_cell)
PERCENT: Final = Unit(name="percent", cell=cells.percent_cell)
DURATION: Final = Unit(name="milliseconds", cell=cells.duration_cell, kind=FieldKind.DURATION)
AGE: Final = Unit(name="milliseconds", cell=cells.age_cell, kind=FieldKind.DURATION)
TIME: Final = Unit(name="time", cell=cells.text_cell, is_number=False)
