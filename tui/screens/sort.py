"""``s``: by which column? ``l``: which columns?"""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList, SelectionList
from textual.widgets.option_list import Option
from textual.widgets.selection_list import Selection


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


class ColumnsScreen(ModalScreen[str | None]):
    """All columns of a table; Space takes one in or out, Enter shows them. Empty: as it fits."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "show these", priority=True),
        Binding("escape", "dismiss(None)", "back"),
        Binding("backspace", "dismiss('')", "as it fits"),
    ]

    def __init__(self, columns: Sequence[tuple[str, str]], shown: Sequence[str]) -> None:
        super().__init__()
        self._columns = columns
        self._shown = shown

    def compose(self) -> ComposeResult:
        """The columns, those that are shown chosen."""
        yield SelectionList[str](
            *(Selection(title, name, name in self._shown) for name, title in self._columns),
            id="sort",
        )

    def on_mount(self) -> None:
        """What the keys do stands below."""
        chooser = self.query_one(SelectionList)
        chooser.border_subtitle = "Space · Enter · ⌫ as it fits"

    def action_apply(self) -> None:
        """Those that are chosen, in the table's order."""
        taken = self.query_one(SelectionList).selected
        self.dismiss(",".join(name for name, _ in self._columns if name in taken))
