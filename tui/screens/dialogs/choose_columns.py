"""``s``: by which column? ``l``: which columns?"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option


class SortScreen(ModalScreen[str | None]):
    """A list of columns; the present one again turns the order."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back")]

    def __init__(
        self, columns: list[tuple[str, str]], present: str, digits: Mapping[str, str]
    ) -> None:
        """``digits``: the key that sorts by a column without this list."""
        super().__init__()
        self._columns = columns
        self._present = present
        self._digits = digits

    def compose(self) -> ComposeResult:
        """The columns."""
        options = [Option(self._label(name, title), id=name) for name, title in self._columns]
        yield OptionList(*options, id="sort")

    def _label(self, name: str, title: str) -> str:
        arrow = "↓" if self._present.startswith("-") else "↑"
        digit = self._digits.get(name, " ")
        return f"{digit} {arrow if self._present.lstrip('-') == name else ' '} {title}"

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Largest first; the same column again: smallest first."""
        name = event.option.id or ""
        self.dismiss(name if self._present == f"-{name}" else f"-{name}")


class ColumnsScreen(ModalScreen[str | None]):
    """All columns of a table; Space takes one in or out, Enter shows them. Empty: as it fits."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "flip", "in or out"),
        Binding("escape", "dismiss(None)", "back"),
        Binding("backspace", "dismiss('')", "as it fits"),
    ]

    def __init__(self, columns: Sequence[tuple[str, str]], shown: Sequence[str]) -> None:
        super().__init__()
        self._columns = columns
        self._taken = set(shown)

    def compose(self) -> ComposeResult:
        """The columns, those that are shown with a tick."""
        yield OptionList(*map(self._label, self._columns), id="sort")

    def on_mount(self) -> None:
        """Shows its keys below."""
        self.query_one(OptionList).border_subtitle = "Space ✔ · Enter · ⌫ all that fit"

    def action_flip(self) -> None:
        """The column under the cursor."""
        chooser = self.query_one(OptionList)
        at = chooser.highlighted
        if at is not None:
            self._taken ^= {self._columns[at][0]}
            chooser.replace_option_prompt_at_index(at, self._label(self._columns[at]))

    def on_option_list_option_selected(self) -> None:
        """Show those that are taken, in the table's order."""
        self.dismiss(",".join(name for name, _ in self._columns if name in self._taken))

    def _label(self, column: tuple[str, str]) -> str:
        name, title = column
        return f"{'✔' if name in self._taken else ' '} {title}"
