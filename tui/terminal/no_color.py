"""``NO_COLOR``: the terminal's own two colours; selections are reversed (Textual issue 2829)."""

from functools import lru_cache
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

MARKED_FROM: Final = 0.15
"""A background that is so much lighter or darker than what it lies on means something."""
_REVERSE: Final = Style(reverse=True)


class NoColors(LineFilter):
    """In place of Textual's greys, which leave dim texts unreadable and are colours all the same.

    Shapes, letters and shades of characters say the same as colours do.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Without colours; a background that stands out becomes reverse video."""
        return [
            Segment(text, None if style is None else _plain(style, background), control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def _plain(style: Style, background: Color) -> Style:
    plain = style.without_color
    if style.bgcolor is None or style.bgcolor.is_default:
        return plain
    over = Color.from_rich_color(style.bgcolor)
    is_marked = abs(over.brightness - background.brightness) >= MARKED_FROM
    return plain + _REVERSE if is_marked else plain
