"""Plain-text tables for people, in colour on a terminal, and how they fit its width.

One rule for all commands (docs/reference/command-line.md). On a terminal, texts of any length are
shortened first; then the least important columns are left out, and stderr names them. In a pipe a
program reads them: a tab between the cells, one word for each head, figures as they are in files,
and ``-`` for what there is not. ``COLUMNS`` says how wide a reader is, and is then a terminal's.
"""

import math
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from control.model.moments import iso_text
from control.move.check import Check
from control.views.format import MINUS, NA, NONE
from control.views.preflight_checks import TONES
from control.views.printable import cut_middle, visible
from control.views.tables import units
from control.views.tables.cells import STAR
from control.views.tables.column import Column, column
from control.views.tables.export import page_values
from control.views.tables.query import Page
from control.views.tables.rows import SHAPES, Cell, CellValue, Fact, Row, Tone

WIDTH_DEFAULT: Final = 80
"""Of a terminal that does not say how wide it is."""
LONG_MIN: Final = 16
LONG_SHARE: Final = 0.4
"""Of the width: so much all columns of long texts together keep before a column is left out for
them; each at least ``LONG_MIN`` characters."""
GAP: Final = 2
NOTHING: Final = "-"
"""In a pipe: there is none, or it is not known."""
_COLORS: Final = {
    Tone.CRITICAL: "31",
    Tone.WARNING: "33",
    Tone.NOTICE: "36",
    Tone.FINE: "32",
    Tone.MUTED: "2",
}


def figure(title: str, *, rank: int = 1) -> Column:
    """A column of numbers; a higher ``rank`` is left out earlier."""
    return column(title, title, units.COUNT, rank=rank)


def words(title: str, *, rank: int = 1, is_long: bool = False) -> Column:
    """A column of texts; ``is_long``: of any length, so that they are shortened."""
    return column(title, title, rank=rank, is_long=is_long)


def write_table(
    columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]], *, is_chosen: bool = False
) -> None:
    """Print rows under their heads; ``is_chosen``: as for ``write_rows``. A figure that people read
    with a unit is a cell, which has its value as well."""
    if room() is None:
        _write_plain(
            columns, ([_plain(*it) for it in zip(columns, row, strict=True)] for row in rows)
        )
        return
    _write(columns, [[visible(str(cell)) for cell in row] for row in rows], is_chosen=is_chosen)


def write_values(told: Sequence[tuple[Column, CellValue]]) -> None:
    """Print one row for a program: values under the names of their columns."""
    columns = [each for each, _ in told]
    _write_plain(columns, [[_plain_value(*it) for it in told]])


def write_facts(facts: Iterable[Fact]) -> None:
    """Print figures from top to bottom, a title before each."""
    told = [(it.title, it.cell) for it in facts]
    if room() is None:
        columns = [figure(title) for title, _ in told]
        _write_downwards(columns, [cell for _, cell in told])
        return
    width = max((len(title) for title, _ in told), default=0)
    sys.stdout.writelines(f"{title.ljust(width)}  {cell.text}\n" for title, cell in told)


def mark(tone: Tone) -> str:
    """Its shape; its name for a program."""
    return tone.value if room() is None else SHAPES[tone]


def check_line(check: Check) -> str:
    """A pre-flight check: its verdict's mark, its name and reason."""
    return f"{mark(TONES[check.verdict])} {check.name}: {check.reason}"


def write_rows(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    is_chosen: bool = False,
    more: str = "--json",
) -> None:
    """Print rows of the screens; ``is_chosen``: somebody has named these columns, so none is left
    out. ``more``: flags that show what is left out."""
    if room() is None:
        _write_plain(
            columns, ([_plain(each, row.cell(each.id)) for each in columns] for row in rows)
        )
        return
    texts = [[_text(row, each) for each in columns] for row in rows]
    tones = [[row.cell(each.id).tone for each in columns] for row in rows]
    _write(columns, texts, tones, is_chosen=is_chosen, more=more)


def write_page(page: Page, *, is_chosen: bool = False, more: str = "--json") -> None:
    """Print a page of a table; how many rows it leaves out is told on stderr."""
    if room() is None:
        shown = page_values(page)
        rows = ([_plain_value(it, row[it.id]) for it in page.columns] for row in shown)
        _write_plain(page.columns, rows)
    else:
        write_rows(page.columns, page.rows, is_chosen=is_chosen, more=more)
    if len(page.rows) < page.matching:
        told = f"{len(page.rows):,} of {page.matching:,} rows; --json has all"
        sys.stderr.write(f"{told}\n")


def write_figures(columns: Sequence[Column], row: Row) -> None:
    """Print one row from top to bottom."""
    if room() is None:
        _write_downwards(columns, [row.cell(each.id) for each in columns])
        return
    width = max(len(each.title) for each in columns)
    for each in columns:
        text = _painted(_text(row, each), row.cell(each.id).tone)
        sys.stdout.write(f"{each.title.ljust(width)}  {text}\n")


def write_progress(text: str) -> None:
    """Over the line that a terminal shows on stderr; one that were wider would stay there."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH_DEFAULT
    except OSError:
        width = WIDTH_DEFAULT
    sys.stderr.write(f"\r{cut_middle(visible(text), width - 1, cells=shown_width)}\033[K")
    sys.stderr.flush()


def has_color() -> bool:
    """Whether standard output takes colours: https://no-color.org."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not is_plain


def room() -> int | None:
    """Characters in a line: what ``COLUMNS`` says, else of the terminal; None: in a pipe."""
    said = os.environ.get("COLUMNS", "")
    if not sys.stdout.isatty() and not (said.isdecimal() and int(said)):
        return None
    return shutil.get_terminal_size((WIDTH_DEFAULT, 24)).columns


def fitted(
    columns: Sequence[Column], widths: Sequence[int], width: int, *, is_chosen: bool = False
) -> dict[int, int]:
    """Which columns a line of ``width`` has, and how wide they are then; pure.

    ``widths``: what the columns would take. The first column stays, whatever the width; with
    ``is_chosen`` all do.
    """
    long_count = sum(each.is_long for each in columns)
    kept = max(int(width * LONG_SHARE) // max(long_count, 1), LONG_MIN)
    shown: dict[int, int] = {}
    left = width + GAP
    for at in sorted(range(len(columns)), key=lambda at: (at > 0, columns[at].rank)):
        least = min(widths[at], kept) if columns[at].is_long else widths[at]
        if is_chosen or at == 0 or GAP + least <= left:
            shown[at] = least if at or is_chosen else min(least, width)
            left -= GAP + shown[at]
    growing = [at for at in shown if columns[at].is_long and shown[at] < widths[at]]
    while left > 0 and growing:
        share = max(left // len(growing), 1)
        for at in growing[:left]:
            more = min(share, widths[at] - shown[at])
            shown[at] += more
            left -= more
        growing = [at for at in growing if shown[at] < widths[at]]
    return dict(sorted(shown.items()))


def _write(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    tones: Sequence[Sequence[Tone]] = (),
    *,
    is_chosen: bool = False,
    more: str = "--json",
) -> None:
    if not rows:
        sys.stdout.write("(none)\n")
        return
    heads = [visible(each.title) for each in columns]
    widths = [max(map(shown_width, column)) for column in zip(heads, *rows, strict=True)]
    width = room()
    shown = dict(enumerate(widths))
    if width is not None:
        shown = fitted(columns, widths, width, is_chosen=is_chosen)
    for number, line in enumerate((heads, *rows)):
        cells = []
        for at, size in shown.items():
            tone = tones[number - 1][at] if tones and number else Tone.PLAIN
            cells.append(_painted(_padded(line[at], size, columns[at]), tone))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
    if left_out := [head for at, head in enumerate(heads) if at not in shown]:
        sys.stderr.write(f"no room for: {', '.join(left_out)} (`| less -S`, {more})\n")


def _write_plain(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    for line in ([visible(each.name) for each in columns], *rows):
        sys.stdout.write("\t".join(line) + "\n")


def _write_downwards(columns: Iterable[Column], cells: Iterable[Cell]) -> None:
    for each, cell in zip(columns, cells, strict=True):
        sys.stdout.write(f"{each.name}\t{_plain(each, cell)}\n")


def _plain(column: Column, cell: Cell | str) -> str:
    """A cell for a program: a figure, a moment or a word by its value, without what people read
    beside it. A bound (``≥ 40``) is no figure."""
    if isinstance(cell, str):
        return _plain_text(column, cell)
    if column.is_number or column.unit is units.TIME or isinstance(cell.value, str):
        return _plain_value(column, cell.value)
    return _plain_text(column, cell.text)


def _plain_value(column: Column, value: CellValue) -> str:
    if column.unit is units.TIME and isinstance(value, int | float):
        return _moment(value)
    if isinstance(value, str):
        return _plain_text(column, value)
    if value is None or not math.isfinite(value):
        return NOTHING
    return str(value) if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")


def _moment(at_ms: float) -> str:
    try:
        return iso_text(int(at_ms))
    except (ValueError, OverflowError, OSError):
        return NOTHING  # beyond every calendar: an estimate at a byte per second


def _plain_text(column: Column, text: str) -> str:
    text = visible(text.removeprefix(STAR))
    if text in ("", NONE, NA):
        return NOTHING
    if column.is_number:
        return text.replace(",", "").replace(" ", "").replace(MINUS, "-")
    if column.unit is units.IDS:
        return ",".join(text.replace(",", " ").split())
    return text


def _text(row: Row, column: Column) -> str:
    return row.cell(column.id).shaped(is_number=column.is_number)


def shown_width(text: str) -> int:
    """Cells that a terminal gives it: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # most tables need not wait for it

    return cell_len(text)


def _padded(text: str, width: int, column: Column) -> str:
    text = cut_middle(text, width, cells=shown_width)
    blank = " " * (width - shown_width(text))
    return f"{blank}{text}" if column.is_number else f"{text}{blank}"


def _painted(text: str, tone: Tone) -> str:
    if tone not in _COLORS or not has_color():
        return text
    return f"\x1b[{_COLORS[tone]}m{text}\x1b[0m"
