"""Plain-text tables for people: aligned columns that fit, in colour on a terminal."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, Final

from control.views.columns import Column
from control.views.pages import Page
from control.views.printable import visible
from control.views.rows import Row, Tone

WIDTH_DEFAULT: Final = 80
"""Where nobody says how wide the screen is: in a pipe."""
CUT_MIN: Final = 12
"""So much of a text is shown on the narrowest screen."""
RANKS: Final = (1, 2, 3)
_COLORS: Final = {
    Tone.CRITICAL: "31",
    Tone.WARNING: "33",
    Tone.NOTICE: "36",
    Tone.FINE: "32",
    Tone.MUTED: "2",
}


def write_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, cuts_last: bool = False
) -> None:
    """Print rows under their heads; columns whose cells all begin with a digit align right.

    ``cuts_last``: the last column is text that is cut where the screen ends.
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    if cuts_last:
        others = [max(map(len, column)) for column in list(zip(head, *rows, strict=True))[:-1]]
        left = max(screen_width() - sum(others) - 2 * len(others), CUT_MIN)
        rows = [[*row[:-1], _cut(row[-1], left)] for row in rows]
    is_number = [
        all(cell[:1].isdigit() or cell[:1] in "-+−–≈n" for cell in column)
        for column in zip(*rows, strict=True)
    ]
    _write(head, rows, is_number)


def write_rows(columns: Sequence[Column], rows: Sequence[Row], *, is_chosen: bool = False) -> None:
    """Print those columns that the screen has room for, the important ones first; all of them
    where somebody has chosen them. What is left out is told on stderr."""
    texts = {each.id: [_text(row, each) for row in rows] for each in columns}
    shown = list(columns) if is_chosen else _fitting(columns, texts)
    left_out = [each.title for each in columns if each not in shown]
    tones = [[row.cell(each.id).tone for each in shown] for row in rows]
    lines = list(zip(*(texts[each.id] for each in shown), strict=True))
    _write([each.title for each in shown], lines, [each.is_number for each in shown], tones)
    if left_out and rows:
        sys.stderr.write(f"also: {', '.join(left_out)} (--columns all, --json, --csv)\n")


def write_page(page: Page[Any], *, is_chosen: bool = False) -> None:
    """Print a page of a table; how many rows it leaves out is told on stderr."""
    write_rows(page.columns, page.rows, is_chosen=is_chosen)
    if len(page.rows) < page.matching:
        told = f"{len(page.rows):,} of {page.matching:,} rows; --csv and --json have all"
        sys.stderr.write(f"{told}\n")


def write_figures(columns: Sequence[Column], row: Row) -> None:
    """Print one row from top to bottom."""
    width = max(len(each.title) for each in columns)
    for each in columns:
        text = _painted(_text(row, each), row.cell(each.id).tone)
        sys.stdout.write(f"{each.title.ljust(width)}  {text}\n")


def has_color() -> bool:
    """Whether standard output takes colours: https://no-color.org."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not is_plain


def screen_width() -> int:
    """Of the terminal, or what ``COLUMNS`` says."""
    return shutil.get_terminal_size((WIDTH_DEFAULT, 24)).columns


def _fitting(columns: Sequence[Column], texts: dict[str, list[str]]) -> list[Column]:
    left, chosen = screen_width() + 2, set()
    for rank in RANKS:
        for each in columns:
            needed = 2 + max(map(len, (each.title, *texts[each.id])))
            if each.rank == rank and (needed <= left or each is columns[0]):
                left -= needed
                chosen.add(each.id)
    return [each for each in columns if each.id in chosen]


def _text(row: Row, column: Column) -> str:
    return row.cell(column.id).shaped(is_number=column.is_number)


def _write(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    is_number: Sequence[bool],
    tones: Sequence[Sequence[Tone]] = (),
) -> None:
    if not rows:
        sys.stdout.write("(none)\n")
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    plain = [Tone.PLAIN] * len(widths)
    for number, line in enumerate((head, *rows)):
        of_line = tones[number - 1] if tones and number else plain
        cells = [
            _painted(cell.rjust(width) if right else cell.ljust(width), tone)
            for cell, width, right, tone in zip(line, widths, is_number, of_line, strict=True)
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _painted(text: str, tone: Tone) -> str:
    if tone not in _COLORS or not has_color():
        return text
    return f"\x1b[{_COLORS[tone]}m{text}\x1b[0m"
