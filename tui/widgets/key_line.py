"""The last line: the keys that do something here. Over it, after ``g``, where one can go."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.content import Content
from textual.widgets import Static

from control.views.keymap import PLACES

if TYPE_CHECKING:
    from textual.screen import Screen

_HOLDS: Final = "\u00a0"
"""A space at which no line ends."""
_KEY: Final = "[@click=app.simulate_key('{key}')][bold $footer-key-foreground]$shown[/] $words[/] "
_GREYED: Final = "[$text-disabled]$shown $words[/] "


class KeyLine(Static):
    """One line of text; a click on a key presses it. Greyed keys do nothing by themselves."""

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._shown = ""

    def on_mount(self) -> None:
        """Keys follow the focus."""
        self.screen.bindings_updated_signal.subscribe(self, self._show)

    def _show(self, screen: Screen[object]) -> None:
        if screen is not self.screen:
            return
        pieces = list(self._pieces(screen))
        markup = "".join(piece.markup for piece in pieces)
        if markup != self._shown:
            self._shown = markup
            self.update(Content("").join(pieces))

    def _pieces(self, screen: Screen[object]) -> Iterator[Content]:
        told: set[str] = set()
        for _, binding, is_lit, _ in screen.active_bindings.values():
            if binding.show and binding.action not in told:
                told.add(binding.action)
                yield Content.from_markup(
                    _KEY.replace("{key}", binding.key) if is_lit else _GREYED,
                    shown=self.app.get_key_display(binding),
                    words=binding.description,
                )


class GotoLine(Static):
    """The places, while one is to be chosen; it takes no focus, so that nothing else is painted."""

    def __init__(self) -> None:
        super().__init__(id="goto")
        self.display = False

    def enter(self) -> None:
        """Show the places: the next key is the letter of one."""
        self.update(_lines(self.app.size.width - 2))
        self.display = True

    def leave(self) -> None:
        """Chosen, or not."""
        self.display = False


def _lines(width: int) -> Text:
    """``go to   o overview   t topics …``; a line never ends within a place."""
    places = (f"{place.key} {place.title.lower()}".replace(" ", _HOLDS) for place in PLACES)
    lines = textwrap.wrap("   ".join((f"go{_HOLDS}to", *places)), width)
    held = Text("\n".join(lines))
    held.highlight_regex(rf"(?<!\S)\w(?={_HOLDS})", "bold")
    return Text(held.plain.replace(_HOLDS, " "), spans=held.spans)
