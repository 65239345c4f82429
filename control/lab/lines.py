"""Records from a file: one a line, ``KEY<tab>VALUE`` or ``VALUE``."""

from collections.abc import Iterable
from typing import Final

from control.lab.session import KeyAndValue

LINES_MAX: Final = 1_000_000


class LinesError(ValueError):
    """A file that cannot be sent; its text says why."""


def lines_of(data: bytes, name: str) -> list[bytes]:
    """The lines of a file that is called ``name``.

    Raises:
        LinesError: no line, or more than ``LINES_MAX``.
    """
    lines = data.splitlines()
    if not lines or len(lines) > LINES_MAX:
        raise LinesError(f"{name} has {len(lines):,} lines; 1 to {LINES_MAX:,} can be sent at once")
    return lines


def records_of(lines: Iterable[bytes]) -> tuple[KeyAndValue, ...]:
    """Keys (None: none) and values, in the lines' order."""
    return tuple(map(_record_of, lines))


def _record_of(line: bytes) -> KeyAndValue:
    key, tab, value = line.partition(b"\t")
    return (key, value) if tab else (None, line)
