"""``s``: by which column?"""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option


class SortScreen(ModalScreen[str | None]):
    """A list of columns; the present one again turns the order."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back")]

    def __init__(self, columns: list[tuple[str, str]], present: str) -> None:
        super().__init__()
        self._columns = columns
        self._present = present

    def compose(self) -> ComposeResult:
        """The columns."""
        options = [Option(self._label(name, title), id=name) for name, title in self._columns]
        yield OptionList(*options, id="sort")

    def _label(self, name: str, title: str) -> str:
        if self._present.lstrip("-") != name:
            return f"  {title}"
        return f"{'↓' if self._present.startswith('-') else '↑'} {title}"

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Largest first; the same column again: smallest first."""
        name = event.option.id or ""
        self.dismiss(name if self._present == f"-{name}" else f"-{name}")
