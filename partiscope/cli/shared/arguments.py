"""Values that commands take: moments, and texts with escapes."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from control.views.tables.rows import Cell
from control.views.times import MOMENT_HELP, TimeError, parse_moment
from partiscope.cli.shared.exits import CommandError, Exit

TIME_HELP: Final = f"{MOMENT_HELP}."
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "\\": "\\"}


def moment_of(text: str, flag: str) -> int:
    """Milliseconds since the epoch of a time as it is typed after ``flag``.

    Raises:
        CommandError: status 2; it is no time.
    """
    try:
        return parse_moment(text, now_ms=time.time_ns() // 1_000_000)
    except TimeError as error:
        raise CommandError(f"{flag}: {error}", Exit.WRONG_USE) from error


def zone_text(at_ms: float) -> str:
    """This machine's zone at that moment, as ``+0200``; nothing where no calendar has it."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().strftime("%z")
    except (ValueError, OverflowError, OSError):
        return ""


def zoned(cell: Cell) -> Cell:
    """A moment with its zone."""
    if not isinstance(cell.value, int | float):
        return cell
    return replace(cell, text=f"{cell.text}{zone_text(cell.value)}")


def escapes_decoded(text: str, flag: str) -> str:
    """``\\n``, ``\\t``, ``\\x1f`` … as the characters that they name.

    Raises:
        CommandError: status 2; an escape that is none.
    """

    def plain(match: re.Match[str]) -> str:
        name = match[1]
        if name[0] == "x" and len(name) == 3:
            return chr(int(name[1:], 16))
        if name not in _PLAIN:
            known = ", ".join(f"\\{each}" for each in (*_PLAIN, "xHH"))
            raise CommandError(f"{flag}: \\{name} is no escape; there are {known}", Exit.WRONG_USE)
        return _PLAIN[name]

    return _ESCAPE.sub(plain, text)
