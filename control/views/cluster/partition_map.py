"""The map of all partitions: one cell each, in order of names, coloured by one measure.

Cells are cut into rows of equal length. Colours are levels of one byte, made here: of 133,000
partitions a screen gets 133 kB, and asks for the value under its pointer. Sizes and rates are
log-normal, so levels are even steps of the logarithm; 0 is "none or unknown".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import FloatColumn, floats, list_lengths
from control.model.status import INTERNAL_PREFIX
from control.views import format as text
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.cells import isr_short_cell
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import TableQuery, matching

MEASURES: Final = {
    "size_bytes": "bytes",
    "in_bytes_per_s": "in/s",
    "out_bytes_per_s": "out/s",
    "lag": "max lag",
    "isr": "out of sync",
    "isr_short_ms": "short ISR",
}
"""Of the leader's replica; lag is that of the worst group, "out of sync" counts replicas, "short
ISR" tells for how long one or more have been."""
_SOURCES: Final = {"lag": "known_lag"}
"""Columns of the table that are called otherwise."""
SORTS: Final = {
    "size_bytes": "-size_bytes",
    "in_bytes_per_s": "-in_bytes",
    "out_bytes_per_s": "-out_bytes",
    "lag": "-max_lag",
    "isr": "isr",
    "isr_short_ms": "isr",
}
"""How a table is sorted in which the same stands out."""
LEVELS: Final = 255
ASPECT: Final = 2.4
"""Cells beside each other for one below: that of the place on the screen."""

Levels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMap:
    """``values`` by cell (NaN: none or unknown); cell ``n`` is row ``n`` of ``table``."""

    measure: str
    table: pa.Table
    values: FloatColumn
    columns: int
    """Cells in a row."""

    @property
    def rows(self) -> int:
        """Rows of cells; the last may be shorter."""
        return -(-len(self.values) // self.columns) if self.columns else 0

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest value above 0; None: there is none."""
        known = self.values[self.values > 0]
        return (float(known.min()), float(known.max())) if known.size else None

    def levels(self) -> Levels:
        """1 to ``LEVELS`` by cell in even steps of the logarithm, 0 where there is nothing.

        Worked example: of 1, 10 and 100 bytes the levels are 1, 128 and 255.
        """
        found = np.zeros(self.rows * self.columns, dtype=np.uint8)
        ends = self.ends
        if ends is None:
            return found
        low, high = math.log(ends[0]), math.log(ends[1])
        width = max(high - low, 1e-9)
        some = np.flatnonzero(self.values > 0)
        steps = (np.log(self.values[some]) - low) / width * (LEVELS - 1)
        found[some] = 1 + np.rint(steps).astype(np.uint8)
        return found

    def record(self, row: int, column: int) -> dict[str, Any] | None:
        """Name, place and value (in words) of one cell; None: there is no partition there."""
        cell = row * self.columns + column
        if not 0 <= cell < len(self.values) or not 0 <= column < self.columns:
            return None
        names = ["topic", "partition", "leader", "is_at_least"]
        found = self.table.select(names).slice(cell, 1).to_pylist()[0]
        value = float(self.values[cell])
        path = ViewPath(
            view="partition",
            params={"topic": found["topic"], "partition": str(found["partition"])},
        )
        words = f"{self.to_text(value)} {MEASURES[self.measure]}"
        if self.measure == "isr_short_ms":
            short_ms = None if math.isnan(value) else value
            short = isr_short_cell(short_ms, is_at_least=found["is_at_least"])
            words = f"ISR short for {short.text}" if short_ms else "ISR whole"
        return {**found, "words": words, "path": str(path)}

    def cell_of(self, topic: str, partition: int, *, near: int = 0) -> int | None:
        """The cell of a partition, looked for at ``near`` first; None: it is not on this map."""
        names = self.table.select(["topic", "partition"])
        if names.slice(near, 1).to_pylist() == [{"topic": topic, "partition": partition}]:
            return near
        is_it = pc.and_(pc.equal(names["topic"], topic), pc.equal(names["partition"], partition))
        cell: int = pc.index(is_it, True).as_py()
        return cell if cell >= 0 else None

    def topics_between(self, first_row: int, last_row: int) -> tuple[str, str] | None:
        """The first and the last topic of these rows of cells, those of bookkeeping left out."""
        start = max(first_row, 0) * self.columns
        count = (max(last_row, first_row) + 1) * self.columns - start
        names = self.table["topic"].slice(start, count).unique().to_pylist()
        own = [name for name in names if not name.startswith(INTERNAL_PREFIX)] or names
        return (own[0], own[-1]) if own else None

    def to_text(self, value: float) -> str:
        """A value in the measure's unit."""
        return _TEXTS.get(self.measure, text.count_text)(value)


_TEXTS: Final[Mapping[str, text.ToText]] = {
    "size_bytes": text.bytes_text,
    "in_bytes_per_s": text.byte_rate_text,
    "out_bytes_per_s": text.byte_rate_text,
    "isr_short_ms": text.duration_text,
}


def partition_map(
    snapshot: OperatorSnapshot,
    measure: str,
    *,
    filter: str = "",  # noqa: A002
    columns: int = 0,
) -> PartitionMap:
    """The map of what passes ``filter`` (the language of the tables).

    ``columns``: cells in a row; 0: as many as make it ``ASPECT`` times as wide as high.

    Raises:
        FilterError: a filter that cannot be followed.
    """
    table = matching(snapshot.partition_table, PARTITIONS, TableQuery(filter=filter))
    if measure == "isr":
        values = (list_lengths(table["replicas"]) - list_lengths(table["isr"])).astype(np.float64)
    else:
        values = floats(table[_SOURCES.get(measure, measure)])
    columns = columns or math.ceil(math.sqrt(max(len(values), 1) * ASPECT))
    return PartitionMap(measure=measure, table=table, values=values, columns=columns)


def table_path(shown: PartitionMap, first_row: int, last_row: int, *, within: str = "") -> str:
    """The view path of the table that holds these rows of cells, largest first."""
    found = shown.topics_between(first_row, last_row)
    terms = [within] if within else []
    if found is not None:
        terms += [f'topic>="{found[0]}"', f'topic<="{found[1]}"']
    query = {"q": " ".join(terms), "sort": SORTS[shown.measure]}
    return str(ViewPath(view="partitions", query=query))
