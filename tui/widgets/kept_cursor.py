"""A table whose cursor stays with what it stands on, whatever rows come, go or change places."""

from typing import Final

from textual.coordinate import Coordinate
from textual.events import Key

from tui.terminal.quick_table import QuickTable

_MOVES: Final = frozenset(
    {"up", "down", "left", "right", "j", "k", "pageup", "pagedown", "home", "end",
     "ctrl+home", "ctrl+end"}
)  # fmt: skip
GONE: Final = "the selected row is gone: ↑ ↓ selects another"


class KeptCursorTable(QuickTable):
    """Where the selected row is gone, none is selected until the cursor is moved: no key may act
    on a neighbour that has only taken its place."""

    def stand(self, place: Coordinate, *, is_same: bool) -> None:
        """After rows were written anew: at the place of the row that was selected, or, with
        ``is_same`` False, near the place that it had."""
        if self.cursor_coordinate != place:
            self.move_cursor(row=place.row, column=place.column, scroll=False, animate=False)
        self.show_cursor = is_same

    def on_key(self, event: Key) -> None:
        """The first move only shows where the cursor is."""
        if self.show_cursor or not self.row_count:
            return
        if event.key in _MOVES:
            event.stop()
            self.show_cursor = True
        elif event.key == "enter":
            event.stop()
            self.notify(GONE, severity="warning")

    def on_click(self) -> None:
        """A click selects."""
        self.show_cursor = True
