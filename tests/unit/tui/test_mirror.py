"""The mirror of the screen: the terminal shows the same, and less is sent."""

import doctest
import re
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import get_character_cell_size

from tui.terminal import mirror
from tui.terminal.mirror import ScreenMirror

ROWS: Final = 3
COLUMNS: Final = 12
STYLES: Final = ("", "1", "2;31", "38;2;1;2;3;48;2;9;9;9")
SIGNS: Final = "ab 1▲█é漢"


class Terminal:
    """As much of one as the screens use; written anew, to judge by."""

    def __init__(self) -> None:
        self.cells = {(row, column): (" ", "") for row in range(ROWS) for column in range(40)}
        self.row, self.column, self.style = 0, 0, ""

    def take(self, data: str) -> None:
        for token in re.finditer(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|(.)", data, re.DOTALL):
            row, column, style, sign = token.groups()
            if row:
                self.row, self.column = int(row) - 1, int(column) - 1
            elif style is not None:
                self.style = style.removeprefix("0").removeprefix(";")
            else:
                self.write(sign)

    def write(self, sign: str) -> None:
        width = get_character_cell_size(sign)
        place = (self.row, self.column)
        if self.cells.get(place, ("x", ""))[0] == "":
            self.cells[self.row, self.column - 1] = (" ", "")
        after = (self.row, self.column + width)
        if self.cells.get(after, ("x", ""))[0] == "":
            self.cells[after] = (" ", "")
        self.cells[place] = (sign, self.style)
        if width == 2:
            self.cells[self.row, self.column + 1] = ("", self.style)
        self.column += width


LINES = st.lists(
    st.tuples(st.sampled_from(STYLES), st.text(SIGNS, min_size=1, max_size=6)), max_size=3
)
PAINTINGS = st.lists(
    st.tuples(st.integers(1, ROWS), st.integers(1, COLUMNS), LINES), min_size=1, max_size=6
)


def _written(painting: list[tuple[int, int, list[tuple[str, str]]]]) -> str:
    words = []
    for row, column, line in painting:
        words.append(f"\x1b[{row};{column}H")
        words += [f"\x1b[{style}m{text}\x1b[0m" if style else text for style, text in line]
    return "".join(words)


def _whole(rows: list[str]) -> str:
    return _written([(row, 1, [("1", text)]) for row, text in enumerate(rows, 1)])


@given(st.lists(PAINTINGS, min_size=1, max_size=6))
def test_the_terminal_shows_the_same(
    paintings: list[list[tuple[int, int, list[tuple[str, str]]]]],
) -> None:
    plain, spared, sparing = Terminal(), Terminal(), ScreenMirror()
    for painting in paintings:
        data = _written(painting)
        plain.take(data)
        spared.take(sparing.difference(data))
        written = {place for place in plain.cells if plain.cells[place] != (" ", "")}
        assert {place: spared.cells[place] for place in written} == {
            place: plain.cells[place] for place in written
        }
        assert (spared.row, spared.column) == (plain.row, plain.column)


def test_what_stands_there_is_not_sent_again() -> None:
    sparing = ScreenMirror()
    picture = _whole(["lag 12,904  ", "bytes 3 GiB "])
    assert len(sparing.difference(picture)) > 24
    assert sparing.difference(picture) == ""


def test_after_the_screen_was_cleared_or_its_size_changed_all_is_sent() -> None:
    sparing = ScreenMirror()
    picture = _whole(["lag 12,904  "])
    first = sparing.difference(picture)
    for forgetting in ("\x1b[2J", "\x1b[?1049h"):
        assert sparing.difference(forgetting).endswith(forgetting)
        assert sparing.difference(picture) == first
    sparing.forget()
    assert sparing.difference(picture) == first


def test_modes_questions_and_the_clipboard_pass_and_change_nothing() -> None:
    sparing = ScreenMirror()
    picture = _whole(["lag"])
    sparing.difference(picture)
    for sequence in ("\x1b[?2026h", "\x1b[?2026$p", "\x1b[>1u", "\x1b]52;c;bGFn\x07", "\x1b[?25l"):
        assert sparing.difference(sequence) == sequence
        assert sparing.difference(picture) == ""


def test_the_examples_of_its_docstring() -> None:
    assert doctest.testmod(mirror).failed == 0
