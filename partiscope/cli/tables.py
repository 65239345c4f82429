"""Plain-text tables for people: aligned columns, numbers to the right, no decoration to parse."""

import sys
from collections.abc import Sequence


def write_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their heads; columns whose cells all begin with a digit align right."""
    if not rows:
        sys.stdout.write("(none)\n")
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    is_number = [
        all(cell[:1].isdigit() or cell[:1] in "-+−–≈n" for cell in column)
        for column in zip(*rows, strict=True)
    ]
    for line in (head, *rows):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
