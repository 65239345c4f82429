"""``g``: where to? One letter more."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from control.views.keymap import PLACES


class GotoScreen(ModalScreen[str | None]):
    """A line at the bottom that lists the places."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(place.key, f"go('{place.path}')", show=False) for place in PLACES),
        Binding("escape", "dismiss(None)", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The places."""
        words = "   ".join(f"[b]{place.key}[/b] {place.title.lower()}" for place in PLACES)
        yield Static(f"go to   {words}", id="goto")

    def action_go(self, path: str) -> None:
        """That one."""
        self.dismiss(path)
