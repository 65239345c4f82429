"""``?``: every key, by context."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from control.operations.catalogue import FORMS
from control.views.keymap import KEYS, PLACES

OWN: Final = (
    ("a table", "1 … 9, 0", "sort by that column (s lists them); again: the other way"),
    ("a table", "i", "all figures of its row, and what they mean"),
    ("partition", "1 … 4", "replicas, groups, history, segments"),
    ("the map", "1 … 6", "what is measured; Enter opens the partitions behind a cell"),
    ("the map", "b", "topic by broker, or partition by partition"),
    ("messages", "F", "follow them as they come"),
    ("what if", "1 … 9", "who dies"),
    ("charts", "+ -", "less or more of the past"),
    ("charts", "[ ]", "half of that earlier, later; Space: back to now"),
    ("anywhere", "M", "mouse on, off (off: the terminal selects text with it)"),
    ("anywhere", "ctrl+l", "paint the screen anew"),
)
"""Keys that only a terminal has: where, which, what for."""


class HelpScreen(ModalScreen[None]):
    """Context, key, action."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("question_mark", "dismiss", show=False),
        Binding("q", "dismiss", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The table of keys."""
        lines = [_line("go", f"g {place.key}", f"{place.title}: {place.help}") for place in PLACES]
        lines += [_line(item.where, item.key, item.does) for item in KEYS]
        lines += [_line(*line) for line in OWN]
        lines += [_line("operation", form.key, f"{form.title}: {form.help}") for form in FORMS]
        with VerticalScroll(id="help"):
            yield Static("\n".join(lines))


def _line(where: str, key: str, does: str) -> str:
    return f"[dim]{where:<10}[/dim][b]{key:<12}[/b]{does}"
