"""A list of numbers or of structs for each row, as it lies in one array. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spark_metrics.arrow_tables import one_array
from spark_metrics.figures.column import Column


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Items of row ``i`` are ``items[starts[i] : starts[i] + counts[i]]``."""

    items: Any
    """An Arrow array."""
    starts: Any
    counts: Any

    @staticmethod
    def of(values: Any) -> "Lists":
        """Read an Arrow array of lists; a null is an empty list."""
        if isinstance(values, pa.ChunkedArray):
            values = one_array(values)
        ends = values.offsets.to_numpy().astype(np.int64)
        counts = np.where(values.is_valid().to_numpy(zero_copy_only=False), np.diff(ends), 0)
        return Lists(values.values, ends[:-1], counts)

    def field(self, name: str) -> "Lists":
        """The same of one field of structs."""
        return Lists(self.items.field(name), self.starts, self.counts)

    def packed(self) -> Any:
        """All items, one list after the other."""
        ends = np.cumsum(self.counts)
        if bool((self.starts == self.starts[:1] + ends - self.counts).all()):
            begin = int(self.starts[0]) if len(self.starts) else 0
            return self.items.slice(begin, int(ends[-1]) if len(ends) else 0)
        places = np.repeat(self.starts - (ends - self.counts), self.counts)
        return self.items.take(pa.array(places + np.arange(len(places))))

    def at(self, rows: Column) -> "Lists":
        """The lists of these rows; an empty one where the row is unknown."""
        is_known = rows.is_known.numpy()
        places = rows.or_else(0).numpy()
        if not len(self.starts):
            return Lists(self.items, np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64))
        return Lists(self.items, self.starts[places], np.where(is_known, self.counts[places], 0))

    def item(self, place: Any) -> Column:
        """The item at this place of each list; unknown where there is none."""
        is_there = (place >= 0) & (place < self.counts)
        return Column(self.items.take(pa.array(self.starts + place, mask=~is_there)))

    def leading(self, test: Callable[[Any, Any], Any], bound: Column, *, stride: int = 1) -> Any:
        """How many items in turn, from the first on, pass the test against the row's bound.

        All that pass come first. ``stride``: only each so-manieth item is looked at. None passes
        where the bound is unknown.
        """
        counts = np.where(bound.is_known.numpy(), self.counts // stride, 0)
        passed = np.zeros(len(counts), np.int64)
        if not counts.any():
            return passed
        items, bounds = self.items.to_numpy(zero_copy_only=False), bound.or_else(0).numpy()
        step = 1 << int(counts.max()).bit_length() - 1
        while step:
            place = passed + step - 1
            is_there = place < counts
            value = items[np.where(is_there, self.starts + stride * place, 0)]
            passed += np.where(is_there & test(value, bounds), step, 0)
            step //= 2
        return passed
