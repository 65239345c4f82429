"""Tones of a cell as Rich styles; the shape beside it says the same without colour."""

from typing import Final

from rich.text import Text

from control.views.rows import Cell, Tone

STYLES: Final = {
    Tone.PLAIN: "",
    Tone.FINE: "green",
    Tone.NOTICE: "cyan",
    Tone.WARNING: "yellow",
    Tone.CRITICAL: "bold red",
    Tone.MUTED: "dim",
}


def cell_text(cell: Cell, *, is_number: bool = False, with_shape: bool = False) -> Text:
    """A cell as text: numbers to the right, the tone's shape in front where it has one."""
    shape = f"{cell.shape} " if with_shape and cell.shape.strip() else ""
    return Text(
        f"{shape}{cell.text}",
        style=STYLES[cell.tone],
        justify="right" if is_number else "left",
        no_wrap=True,
    )
