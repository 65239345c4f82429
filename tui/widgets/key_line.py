"""The last line: the keys that do something here. Over it, after ``g``, where one can go."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from control.views.keymap import PLACES

if TYPE_CHECKING:
    from textual.screen import Screen

_HOLDS: Final = "\u00a0"
"""A space at which no line ends."""
_KEY: Final = "[@click=app.simulate_key('{key}')][bold $footer-key-foreground]$shown[/] $words[/]"
_GREYED: Final = "[$text-disabled]$shown $words[/]"


class KeyLine(Static):
    """One line of text; a click on a key presses it. Greyed keys do nothing by themselves."""

    def __init__(self) -> None:
        super().__init__(id="keys")
        self._told: tuple[tuple[str, str, bool], ...] = ()

    def on_mount(self) -> None:
        """Keys follow the focus."""
        self.screen.bindings_updated_signal.subscribe(self, self._show)

    def _show(self, screen: Screen[object]) -> None:
        if screen is not self.screen or not screen.is_active:
            return  # below a dialog, which has the keys, the line stays as it is
        by_action = {
            binding.action: (binding.key, binding.description, is_lit)
            for _, binding, is_lit, _ in reversed(screen.active_bindings.values())
            if binding.show
        }
        told = (*reversed(by_action.values()),)
        if told != self._told:
            self._told = told
            self.update(Content(" ").join(self._piece(*each) for each in told))

    def _piece(self, key: str, words: str, is_lit: bool) -> Content:
        markup = _KEY.replace("{key}", key) if is_lit else _GREYED
        shown = self.app.get_key_display(Binding(key, ""))
        return Content.from_markup(markup, shown=shown, words=words)


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
