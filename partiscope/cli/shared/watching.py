"""``--watch N``: a command that lists figures, each N seconds until Ctrl-C.

At a terminal each round is drawn over the one before, cut to the height; elsewhere the rounds
follow each other. A round that fails is told and the next one tries again.
"""

import io
import re
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import partial
from typing import Annotated, Any, Final, TextIO

import typer

from control.views.printable import paragraph
from partiscope.cli.shared.exits import Exit
from partiscope.cli.shared.failures import exit_status_of, explain
from partiscope.cli.shared.grammar import Function, with_flag
from partiscope.cli.shared.options import note, now_ms
from partiscope.cli.shared.tables import shown_width

PERIOD_MAX_S: Final = 86_400
RESIZE_S: Final = 0.25
"""So often a terminal is asked for its size between two rounds."""
Watch = Annotated[
    int | None,
    typer.Option(
        "--watch",
        metavar="SECONDS",
        min=1,
        max=PERIOD_MAX_S,
        help="Show it anew each so many seconds, until Ctrl-C.",
    ),
]
_PAINT: Final = re.compile(r"\x1b\[\d*m")


def watchable(
    problem: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Callable[[Function], Function]:
    """A command with ``--watch``. ``problem`` raises where its other flags do not go with it."""

    def act(period_s: int | None, call: partial[Any]) -> Any:
        if period_s is None:
            return call()
        problem(call.keywords)
        return _watch(call, period_s)

    return lambda function: with_flag(function, "watch", Watch, act)


def _watch(call: partial[Any], period_s: int) -> None:
    flags = call.keywords
    is_json = bool(flags.get("as_json"))
    is_drawn = sys.stdout.isatty() and not is_json and not flags.get("csv")
    rounds: _Drawn | _Written = _Drawn(period_s) if is_drawn else _Written(is_json=is_json)
    is_first = True
    try:
        while True:
            began = time.monotonic()
            rounds.show(call, is_first=is_first)
            is_first = False
            rounds.wait(began + period_s)
    except KeyboardInterrupt:
        rounds.end()


def _problem_of(call: partial[Any], *, is_first: bool) -> str:
    """Runs a round; why it failed, or nothing. A wrong word does not come right by waiting."""
    try:
        call()
    except typer.Exit:  # its status is that of a round, and the next one may be better
        return ""
    except Exception as error:
        status = exit_status_of(error)
        if status is None or (is_first and status == Exit.WRONG_USE):
            raise
        return paragraph(explain(error))
    return ""


class _Written:
    """Rounds for a file or a program: an empty line between them, or one JSON document a line."""

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._written = 0
        self._problem = ""

    def show(self, call: partial[Any], *, is_first: bool) -> None:
        """Write a round; a failure once, until it changes."""
        with redirect_stdout(_Kept(sys.stdout)) as kept:
            problem = _problem_of(call, is_first=is_first)
        if problem and problem != self._problem:
            note(f"partiscope: {problem}")
        self._problem = problem
        text = kept.getvalue()
        if not text:
            return
        if self._is_json:
            # Texts in JSON have no line ends of their own: only those of its layout go.
            text = "".join(line.lstrip(" ") for line in text.split("\n")) + "\n"
        elif self._written:
            sys.stdout.write("\n")
        sys.stdout.write(text)
        sys.stdout.flush()
        self._written += 1

    def wait(self, until_s: float) -> None:
        """Until the next round is due."""
        time.sleep(max(until_s - time.monotonic(), 0))

    def end(self) -> None:
        """All is written."""


class _Drawn:
    """Rounds on a terminal, each in one write over the one before."""

    def __init__(self, period_s: int) -> None:
        self._period_s = period_s
        self._figures: list[str] = []
        self._notes: list[str] = []
        self._figures_ms = 0
        self._size = (0, 0)

    def show(self, call: partial[Any], *, is_first: bool) -> None:
        """Draw a round; after a failure the figures before stay, with the reason above them."""
        with ExitStack() as stack:
            kept = stack.enter_context(redirect_stdout(_Kept(sys.stdout)))
            if sys.stderr.isatty():
                said = stack.enter_context(redirect_stderr(_Kept(sys.stderr)))
            else:
                said = _Kept(sys.stderr)
            problem = _problem_of(call, is_first=is_first)
        self._notes = said.getvalue().splitlines()
        if problem:
            self._notes.append(f"✖ {problem}")
        if not problem or not self._figures:
            self._figures, self._figures_ms = kept.getvalue().splitlines(), now_ms()
        self._draw()

    def wait(self, until_s: float) -> None:
        """Until the next round is due; a resized terminal is drawn anew at once."""
        while (left := until_s - time.monotonic()) > 0:
            time.sleep(min(left, RESIZE_S))
            if shutil.get_terminal_size() != self._size:
                self._draw()

    def end(self) -> None:
        """The prompt comes below the last figures."""
        sys.stdout.write("\n")

    def _draw(self) -> None:
        is_first = self._size == (0, 0)
        self._size = width, height = shutil.get_terminal_size()
        at = time.strftime("%H:%M:%S", time.localtime(self._figures_ms / 1000))
        head = f"{at}, every {self._period_s} s; Ctrl-C ends"
        lines = _cut_to_height([head, *self._notes, *self._figures], width, height)
        clears = ("" if shown_width(_PAINT.sub("", it)) % width == 0 and it else "\x1b[K"
                  for it in lines)  # fmt: skip
        drawn = "\n".join(f"{line}{clear}" for line, clear in zip(lines, clears, strict=True))
        # What stood there before the first round goes into the terminal's history.
        began = "\n" * (height - 1) if is_first else ""
        sys.stdout.write(f"{began}\x1b[H{drawn}\x1b[J")
        sys.stdout.flush()


def _cut_to_height(lines: list[str], width: int, height: int) -> list[str]:
    """As many lines as fit, one row left for the prompt; the last tells how many do not."""
    rows = [max(-(-shown_width(_PAINT.sub("", line)) // max(width, 1)), 1) for line in lines]
    room = max(height - 1, 1)
    if sum(rows) <= room:
        return lines
    count, used = 0, 1  # the line that tells the rest
    while count < len(lines) and used + rows[count] <= room:
        used += rows[count]
        count += 1
    return [*lines[:count], f"… {len(lines) - count} more lines"]


class _Kept(io.StringIO):
    """Keeps a round until it is whole; it is a terminal where its stream is one."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._is_terminal = stream.isatty()

    def isatty(self) -> bool:
        """As the stream that gets the round."""
        return self._is_terminal
