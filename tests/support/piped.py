"""Cells of tables in a pipe that a program would have to take apart."""

import re
from collections.abc import Iterable
from typing import Final

_FOR_PEOPLE: Final = re.compile(
    r"[≈≥≤~<>±]|\s$|^\s|^$|→"
    r"|^[-−+]?\d[\d.,]* ?([KMGT]?i?B(/s)?|%|/s|ms|s|m|h|d|y|min)$"
    r"|^-?\d{1,3}(?!(,10[1-9])+$)(,\d{3})+$|^\d+ of \d+|^\d\d:\d\d(:\d\d)?"
)
"""A bound or an estimate, separators (but brokers 101,102), a unit, two figures in one, a time
without its day."""


def odd_cells(lines: Iterable[str]) -> list[str]:
    """Those of the lines with tabs; empty: each is a figure, a word or a name."""
    cells = [cell for line in lines if "\t" in line for cell in line.split("\t")]
    return [cell for cell in cells if _FOR_PEOPLE.search(cell)]
