"""``g``: where to? One letter more."""

import textwrap
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from control.views.keymap import PLACES

_HOLDS: Final = "\u00a0"
"""A space at which no line ends."""


class GotoScreen(ModalScreen[str | None]):
    """A line at the bottom that lists the places."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(place.key, f"go('{place.path}')", show=False) for place in PLACES),
        Binding("escape", "dismiss(None)", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The places."""
        yield Static(_lines(self.app.size.width - 2), id="goto")

    def action_go(self, path: str) -> None:
        """That one."""
        self.dismiss(path)


def _lines(width: int) -> Text:
    """``go to   o overview   t topics …``; a line never ends within a place."""
    places = (f"{place.key} {place.title.lower()}".replace(" ", _HOLDS) for place in PLACES)
    lines = textwrap.wrap("   ".join(("go\u00a0to", *places)), width)
    held = Text("\n".join(lines))
    held.highlight_regex(rf"(?<!\S)\w(?={_HOLDS})", "bold")
    return Text(held.plain.replace(_HOLDS, " "), spans=held.spans)
