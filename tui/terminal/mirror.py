"""Mirror of the terminal, cell by cell, so that only changed cells are sent: over SSH bytes count.

Textual paints whole lines and widgets anew, with every style spelled out. ``ScreenMirror`` reads
what it writes (cursor positions, styles, text), compares it with what stands there already, and
answers the writing that makes up the difference:

    >>> mirror = ScreenMirror()
    >>> mirror.difference("\\x1b[1;1H\\x1b[1mlag 12,904\\x1b[0m")
    '\\x1b[1;1H\\x1b[0;1mlag 12,904\\x1b[0m'
    >>> mirror.difference("\\x1b[1;1H\\x1b[1mlag 12,907\\x1b[0m")
    '\\x1b[1;10H\\x1b[0;1m7\\x1b[0m'

Any other sequence goes through as it is, in its place; one that may have changed the screen
(clearing, scrolling, another buffer) makes the mirror forget what it knows.
"""

import re
from collections.abc import Iterator
from typing import Final

from rich.cells import get_character_cell_size

Cell = tuple[str, str]
"""A character with what is combined with it, and the codes of its style."""

_TOKEN: Final = re.compile(
    r"\x1b\[(?P<row>\d*);?(?P<column>\d*)H"
    r"|\x1b\[(?P<style>[\d;:]*)m"
    r"|(?P<feed>[\r\n]+)"
    r"|(?P<other>\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)|.)|[\x00-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)
_HARMLESS: Final = re.compile(r"\x1b\[[?>=<][\d;]*[$]?[hlupq]|\x1b\[[?>]?\d*n|\x1b\].*", re.DOTALL)
"""Modes of the terminal, questions to it, clipboard and titles: nothing on the screen changes."""
_OTHER_SCREEN: Final = "\x1b[?1049"
_BRIDGE_CELLS: Final = 6
"""So many unchanged cells cost less than to jump over them."""
_RIGHT_HALF: Final = ""


class ScreenMirror:
    """Knows the screen as far as it was written through it."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, Cell]] = {}
        self._row, self._column, self._style = 0, 0, ""
        self._is_placed = False
        """Whether the cursor was put anywhere since the screen was last forgotten."""
        self._out: list[str] = []
        self._sent: tuple[int, int] | None = None
        """Where the terminal's own cursor stands; None: not known."""
        self._sent_style: str | None = None

    def forget(self) -> None:
        """The screen may show anything: from now on all is sent again."""
        self._rows.clear()
        self._sent = self._sent_style = None
        self._is_placed = False

    def difference(self, data: str) -> str:
        """Bytes to send instead of ``data``, for the same screen."""
        self._out = []
        for token in _TOKEN.finditer(data):
            kind = token.lastgroup
            if kind == "text":
                self._put(token["text"])
            elif kind == "style":
                self._style = "" if token["style"] in ("", "0") else token["style"]
            elif kind == "column" or kind == "row":
                self._row, self._column = int(token["row"] or 1), int(token["column"] or 1)
                self._is_placed = True
            elif kind == "feed":
                self._row += token["feed"].count("\n")
            else:
                self._pass(token["other"])
        self._rest()
        return "".join(self._out)

    def _put(self, text: str) -> None:
        known = self._rows.setdefault(self._row, {})
        for sign, width in _signs(text):
            cell = (sign, self._style)
            if known.get(self._column) != cell:
                self._send(known, cell, width)
            self._column += width

    def _send(self, known: dict[int, Cell], cell: Cell, width: int) -> None:
        self._move(known)
        if cell[1] != self._sent_style:
            self._out.append(f"\x1b[0;{cell[1]}m" if cell[1] else "\x1b[0m")
            self._sent_style = cell[1]
        self._out.append(cell[0])
        # The terminal blanks the other half of a wide character that is written over.
        if known.get(self._column, cell)[0] == _RIGHT_HALF:
            known.pop(self._column - 1, None)
        if known.get(self._column + width, cell)[0] == _RIGHT_HALF:
            del known[self._column + width]
        known[self._column] = cell
        if width == 2:
            known[self._column + 1] = (_RIGHT_HALF, cell[1])
        self._sent = (self._row, self._column + width)

    def _move(self, known: dict[int, Cell]) -> None:
        """To where the next character belongs; over a few cells of the same style by rewriting."""
        if self._sent == (self._row, self._column):
            return
        if self._sent is not None and self._sent[0] == self._row:
            between = range(self._sent[1], self._column)
            if 0 < len(between) <= _BRIDGE_CELLS:
                cells = [known.get(place) for place in (*between, self._column)]
                is_wide = any(cell is not None and cell[0] == _RIGHT_HALF for cell in cells)
                cells.pop()
                if not is_wide and all(cell and cell[1] == self._sent_style for cell in cells):
                    self._out.extend(cell[0] for cell in cells if cell)
                    return
        self._out.append(f"\x1b[{self._row};{self._column}H")

    def _pass(self, sequence: str) -> None:
        if _HARMLESS.fullmatch(sequence) and not sequence.startswith(_OTHER_SCREEN):
            self._out.append(sequence)
            return
        self._rest()
        self._out.append(sequence)
        self.forget()

    def _rest(self) -> None:
        """Leave no style behind, and the cursor where it was wanted."""
        if self._sent_style:
            self._out.append("\x1b[0m")
            self._sent_style = ""
        if self._is_placed and self._sent != (self._row, self._column):
            self._out.append(f"\x1b[{self._row};{self._column}H")
            self._sent = (self._row, self._column)


def _signs(text: str) -> Iterator[tuple[str, int]]:
    """Characters with their widths; one without any belongs to the one before it."""
    if text.isascii():
        yield from ((sign, 1) for sign in text)
        return
    pending, width = "", 0
    for sign in text:
        own = 1 if sign < "\u0300" else get_character_cell_size(sign)
        if own and pending:
            yield pending, width
            pending, width = "", 0
        pending, width = pending + sign, width + own
    if width:
        yield pending, width
