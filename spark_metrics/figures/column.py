"""Columns whose values may be unknown: what is made of an unknown value is unknown. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import one_array

WHOLE_MAX: Final = float(2**63 - 1024)
"""The largest number of 64 bits that is also a float."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Arithmetic and comparisons row by row, by Arrow's rules of the unknown."""

    values: Any
    """An Arrow array."""

    def __add__(self, other: "Operand") -> "Column":
        return Column(pc.add(*_alike(self, other)))

    def __sub__(self, other: "Operand") -> "Column":
        return Column(pc.subtract(*_alike(self, other)))

    def __mul__(self, other: "Operand") -> "Column":
        return Column(pc.multiply(*_alike(self, other)))

    def __truediv__(self, other: "Column | float") -> "Column":
        """A quotient with a fraction; divided by 0 it is unknown."""
        by = _plain(other)
        if isinstance(other, Column):
            by = _fraction(pc.if_else(pc.equal(by, 0), pa.scalar(None, by.type), by))
        return Column(pc.divide(_fraction(self.values), by))

    def __neg__(self) -> "Column":
        return Column(pc.negate(self.values))

    def __lt__(self, other: "Operand") -> "Column":
        return Column(pc.less(*_alike(self, other)))

    def __le__(self, other: "Operand") -> "Column":
        return Column(pc.less_equal(*_alike(self, other)))

    def __gt__(self, other: "Operand") -> "Column":
        return Column(pc.greater(*_alike(self, other)))

    def __ge__(self, other: "Operand") -> "Column":
        return Column(pc.greater_equal(*_alike(self, other)))

    def equals(self, other: "Operand") -> "Column":
        return Column(pc.equal(*_alike(self, other)))

    def __and__(self, other: "Column") -> "Column":
        return Column(pc.and_kleene(self.values, other.values))

    def __or__(self, other: "Column") -> "Column":
        return Column(pc.or_kleene(self.values, other.values))

    def __invert__(self) -> "Column":
        return Column(pc.invert(self.values))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_known(self) -> "Column":
        return Column(pc.is_valid(self.values))

    @property
    def is_unknown(self) -> "Column":
        return Column(pc.is_null(self.values))

    @property
    def is_sure(self) -> "Column":
        """Whether a condition is known to hold."""
        return Column(pc.fill_null(self.values, False)) if self.values.null_count else self

    def or_else(self, *others: "Operand") -> "Column":
        """The first of these that is known."""
        if not self.values.null_count:
            return self
        return Column(pc.coalesce(self.values, *(_plain(other) for other in others)))

    def whole(self) -> "Column":
        """The integer part, as a number of 64 bits; beyond them it is the nearest."""
        kept = pc.min_element_wise(
            pc.max_element_wise(self.values, -WHOLE_MAX, skip_nulls=False),
            WHOLE_MAX,
            skip_nulls=False,
        )
        return Column(pc.trunc(kept).cast(pa.int64()))

    def where(self, condition: "Column") -> "Column":
        """Unknown where the condition is not known to hold."""
        return where(condition, self, None)

    def take(self, places: "Column") -> "Column":
        """The values at these places; unknown where the place is."""
        return Column(self.values.take(places.values))

    def spread(self, rows: Any, count: int) -> "Column":
        """A column of so many rows that has these values in some (a NumPy array); the others are
        unknown."""
        places = np.full(count, -1)
        places[rows] = np.arange(len(rows))
        return Column(self.values.take(pa.array(places, mask=places < 0)))

    def numpy(self) -> Any:
        """The values as a NumPy array; nothing is unknown."""
        return self.values.to_numpy(zero_copy_only=False)


Operand = Column | int | float | str | bool | None
_FLOAT: Final = pa.float64()


def column(values: Any) -> Column:
    """Make a column from an Arrow array, whole or in chunks, or from a NumPy array."""
    if isinstance(values, pa.ChunkedArray):
        return Column(one_array(values))
    return Column(pa.array(values) if isinstance(values, np.ndarray) else values)


def where(condition: Column, then: Operand, otherwise: Operand) -> Column:
    """One value where the condition is known to hold, else the other."""
    kind = next((it.values.type for it in (then, otherwise) if isinstance(it, Column)), None)
    values = [
        pa.scalar(it, kind) if not isinstance(it, Column) else it.values for it in (then, otherwise)
    ]
    return Column(pc.if_else(condition.is_sure.values, *values))


def first_of(*cases: tuple[Column, Operand], otherwise: Operand = None) -> Column:
    """The value of the first condition that is known to hold."""
    values = [value for _, value in cases] + [otherwise]
    chosen = _column_of(values, len(cases[0][0]))
    for condition, value in reversed(cases):
        chosen = where(condition, value, chosen)
    return chosen


def greatest(*of: Operand) -> Column:
    """The greatest of those that are known."""
    return Column(pc.max_element_wise(*_alike(*of)))


def least(*of: Operand) -> Column:
    """The least of those that are known."""
    return Column(pc.min_element_wise(*_alike(*of)))


def _column_of(values: Sequence[Operand], count: int) -> Column:
    """The last of these as a column, of the type that all of them have."""
    kinds = [it.values.type for it in values if isinstance(it, Column)]
    kind = kinds[0] if kinds else pa.scalar(next(it for it in values if it is not None)).type
    last = values[-1]
    if isinstance(last, Column):
        return last
    return Column(
        pa.nulls(count, kind) if last is None else pa.repeat(pa.scalar(last, kind), count)
    )


def _plain(operand: Operand) -> Any:
    return operand.values if isinstance(operand, Column) else operand


def _alike(*operands: Operand) -> list[Any]:
    """Whole numbers beside a fraction become the nearest fractions: Arrow by itself raises for
    those beyond 2**53."""
    values = [_plain(it) for it in operands]
    if any(_is_fraction(it) for it in values):
        return [_fraction(it) if isinstance(it, pa.Array) else it for it in values]
    return values


def _is_fraction(value: Any) -> bool:
    return pa.types.is_floating(value.type) if isinstance(value, pa.Array) else type(value) is float


def _fraction(values: Any) -> Any:
    return values if values.type == _FLOAT else values.cast(_FLOAT, safe=False)
