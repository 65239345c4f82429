"""Rows of the tables that all faces show: only for the page that is on screen.

A cell has a value to sort and compare by, a text to show, and a tone for colour and shape. A
row's ``key`` identifies it from one refresh to the next (selection and scroll stay with it); its
``path`` is the view that Enter opens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, Self

from control.model.status import Severity
from control.views.printable import visible

CellValue = float | int | str | None


class Tone(StrEnum):
    """The meaning of a colour, one and the same on both screens."""

    PLAIN = ""
    FINE = "fine"
    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"
    MUTED = "muted"


SHAPES: Final = {
    Tone.CRITICAL: "✖",
    Tone.WARNING: "▲",
    Tone.NOTICE: "◆",
    Tone.FINE: "✔",
    Tone.PLAIN: " ",
    Tone.MUTED: " ",
}
"""Colour never stands alone: each tone has its shape."""

TONE_OF: Final = {
    Severity.FINE: Tone.FINE,
    Severity.NOTICE: Tone.NOTICE,
    Severity.WARNING: Tone.WARNING,
    Severity.CRITICAL: Tone.CRITICAL,
}


_LOUD: Final = frozenset({Tone.WARNING, Tone.CRITICAL})
"""Tones whose shape stands before figures too; the others would only make them ragged."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a table: value and text."""

    value: CellValue
    text: str
    tone: Tone = Tone.PLAIN
    lines: tuple[str, ...] = ()
    """All of what the text shows only the first of; empty: the text shows all."""

    def __post_init__(self) -> None:
        """Names in it are those that others chose; ``value`` stays as it is."""
        if not self.text.isprintable():
            object.__setattr__(self, "text", visible(self.text))

    @property
    def shape(self) -> str:
        return SHAPES[self.tone]

    def shaped(self, *, is_number: bool) -> str:
        """The text with its tone's shape before it, as tables show it."""
        shape = "" if is_number and self.tone not in _LOUD else self.shape.strip()
        return f"{shape} {self.text}" if shape else self.text

    def __str__(self) -> str:
        return self.text


class Fact(NamedTuple):
    """A figure of a view about one thing: its title, and what it means."""

    title: str
    cell: Cell
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table. ``row.lag`` is its cell in the column of that id."""

    key: str
    path: str
    cells: Mapping[str, Cell]
    """By the ids of all columns of its table, the unlisted ones included."""

    def cell(self, column: str) -> Cell:
        return self.cells[column]

    def __getattr__(self, column: str) -> Cell:
        found = None if column == "cells" else self.cells.get(column)
        if found is None:
            raise AttributeError(f"the row has no column {column!r}")
        return found

    def with_cells(self, **changed: Cell) -> Self:
        """The same row with other cells in these columns."""
        return replace(self, cells={**self.cells, **changed})
