"""A line of text above a table that says what of it is shown."""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input


class FilterLine(Input):
    """Escape keeps what is typed, and gives the keys back to the table. Escape there restores the
    filter with which the view opened; the next one leaves the view."""

    class Left(Message):
        """Escape: the table has the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back to the table")]

    def __init__(self, value: str = "", *, narrows: bool = False, **options: Any) -> None:
        """``narrows``: the table follows while it is typed."""
        super().__init__(value, **options)
        self._opened_with = value
        self._narrows = narrows

    def action_leave(self) -> None:
        """The view focuses its table."""
        self.post_message(self.Left())

    def is_restored(self) -> bool:
        """Restores the filter with which the view opened; false where it stands."""
        if not self._narrows or self.value == self._opened_with:
            return False
        self.value = self._opened_with
        return True
