"""Declarations of tables and their columns, which all faces read.

A column is declared once: id, title, unit, help, where its value stands and how it is written,
by what it is sorted, exported and filtered, and what stays on a narrow screen.
The page, the terminal, the command line, exports and docs/reference/columns.md follow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from control.views import format as text
from control.views.tables import cells, units
from control.views.tables.filters import FilterField, column_name, unknown_column
from control.views.tables.rows import Cell, Fact, Row
from control.views.tables.units import Unit

Record = Any
"""What a row is made of: a row of an Arrow table as a mapping, or an object."""


class ColumnError(ValueError):
    """A choice of columns that cannot be; its text names the wrong word and what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; ``column`` makes it."""

    id: str
    title: str
    unit: Unit
    help: str
    rank: int
    """1 is shown on the narrowest screen."""
    is_long: bool
    """A text that others chose, of any length: it is shortened where room lacks."""
    is_elastic: bool
    """A long text read from its beginning: it takes the room that is left, and is cut there."""
    cell: Callable[[Record], Cell]
    sort: str
    """Column of the Arrow table by which it is sorted; empty: it cannot be."""
    export: str
    """Column of the Arrow table that is exported."""
    filters: Mapping[str, FilterField]
    """Its field of the filter language by each of its names: that of its head first, its id last.
    Choices of columns and of an order take the same names."""
    is_exception: bool
    """A view of one row has it only where it has a value."""
    is_time_left: bool
    """A time until something happens: the soonest is the worst, so sorting begins with it."""

    @property
    def name(self) -> str:
        return column_name(self.title)

    @property
    def is_number(self) -> bool:
        return self.unit.is_number

    @property
    def begins_with_largest(self) -> bool:
        """Whether the greatest values are looked for first."""
        return self.is_number and not self.is_time_left


def column(
    id: str,  # noqa: A002 (as addresses and exports have it)
    title: str,
    unit: Unit = units.TEXT,
    help: str = "",  # noqa: A002
    *,
    rank: int = 3,
    source: str = "",
    cell: Callable[[Any], Cell] | None = None,
    sort: str | None = None,
    filter: str = "",  # noqa: A002
    filter_on: FilterField | None = None,
    is_long: bool = False,
    is_elastic: bool = False,
    is_exception: bool = False,
    is_time_left: bool = False,
) -> Column:
    """Declare a column.

    ``source`` is the column of the Arrow table that has its values (default: its id): they are
    written as ``unit`` writes them, sorted, exported and filtered. ``cell`` writes a whole record
    instead, ``sort`` and ``filter_on`` name other columns. ``filter``: further names of it, beside
    its head and its id.
    """
    place = source or id
    named = column_name(title)
    found = replace(filter_on or FilterField(place, unit.kind), name=named)
    return Column(
        id=id,
        title=title,
        unit=unit,
        help=help,
        rank=rank,
        is_long=is_long,
        is_elastic=is_elastic,
        cell=cell or (lambda record: unit.cell(record[place])),
        sort=place if sort is None else sort,
        export=place,
        filters=dict.fromkeys((named, *filter.split(), id), found),
        is_exception=is_exception,
        is_time_left=is_time_left,
    )


def name_column(
    id: str,  # noqa: A002
    title: str,
    help: str = "",  # noqa: A002
    **declared: Any,
) -> Column:
    """A column of names, or other texts that people chose."""
    return column(id, title, units.TEXT, help, is_long=True, **declared)


def _no_path(_: Record) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A kind of table: its columns, what identifies a row, and what Enter opens."""

    name: str
    about: str = ""
    """What its rows are, for the reference."""
    columns: tuple[Column, ...]
    unlisted: tuple[Column, ...] = ()
    """Columns whose cells rows have, and filters know, but no list shows."""
    named_by: int = 1
    """So many of its first columns name a row."""
    key: Callable[[Record], str]
    path: Callable[[Record], str] = _no_path
    searched: str = ""
    """Column of the Arrow table in which words without a field are looked for."""
    example: str = ""
    """A filter."""
    _every: tuple[Column, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_every", self.columns + self.unlisted)

    @cached_property
    def filters(self) -> Mapping[str, FilterField]:
        """The fields of its filters."""
        return {name: at for it in self._every for name, at in it.filters.items()}

    def named(self, word: str) -> Column:
        """The column of one of its names, by which rows can be sorted.

        Raises:
            ColumnError: there is none.
        """
        return _named([it for it in self._every if it.sort], word)

    def cells(self, record: Record) -> dict[str, Cell]:
        """A record's cells by column."""
        return {it.id: it.cell(record) for it in self._every}

    def row(self, record: Record) -> Row:
        """A record as all faces show it."""
        return Row(key=self.key(record), path=self.path(record), cells=self.cells(record))

    def rows(self, records: Iterable[Record]) -> tuple[Row, ...]:
        """Records as all faces show them."""
        return tuple(map(self.row, records))

    def facts(self, row: Row) -> tuple[Fact, ...]:
        """One row in full, for the view about it."""
        return tuple(
            Fact(it.title, row.cell(it.id), it.help)
            for it in self._every[self.named_by :]
            if row.cell(it.id).value or not it.is_exception
        )

    def only(self, *ids: str) -> tuple[Column, ...]:
        """These columns, in this order."""
        known = {it.id: it for it in self._every}
        return tuple(known[name] for name in ids)

    def without(self, *ids: str) -> tuple[Column, ...]:
        """All columns but these."""
        return tuple(it for it in self.columns if it.id not in ids)


def chosen(columns: Sequence[Column], words: str) -> tuple[Column, ...]:
    """The columns that ``topic,lag,log bytes`` names, in that order; all for an empty text.

    The first column is the row's name and always shown first.

    Raises:
        ColumnError: a word that is no column's name.
    """
    wanted = [_named(columns, word.strip()) for word in words.split(",") if word.strip()]
    found = [columns[0], *wanted] if wanted else columns
    return tuple({it.id: it for it in found}.values())


def _named(columns: Sequence[Column], word: str) -> Column:
    for each in columns:
        if column_name(word) in each.filters:
            return each
    known = {name: at for each in columns for name, at in each.filters.items()}
    raise ColumnError(unknown_column(word, known))


def worded(of: Callable[[Any], str | None], missing: str = text.NONE) -> Callable[[Any], Cell]:
    """Cells of a text that a record has; ``missing`` where it is empty."""
    return lambda record: cells.text_cell(of(record), missing=missing)


def counted(of: Callable[[Any], float | None]) -> Callable[[Any], Cell]:
    """Cells of a number that a record has."""
    return lambda record: cells.count_cell(of(record))
