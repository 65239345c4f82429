"""Lists whose rows are marked, so that one operation is done to several of them."""

from collections.abc import Collection
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType

from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.screens.lists.table_screen import ROWS_MAX, TableScreen
from tui.terminal_session import TerminalSession
from tui.widgets.row_table import RowTable


class MarkedScreen(TableScreen):
    """``m`` marks the row under the cursor, ``*`` all that the filter shows; the keys of operations
    then act on all marked rows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mark", "mark", show=False),
        Binding("asterisk", "mark_all", "mark all", show=False),
        Binding("H", "internal", "internal ones", show=False),
    ]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._marked: dict[str, None] = {}
        """Names in the order in which they were marked."""

    @property
    def marked_here(self) -> tuple[str, ...]:
        """Names of the marked rows."""
        return tuple(self._marked)

    @property
    def marks_words(self) -> str:
        """How many are marked, those that the filter hides included."""
        return f"  ✔ {len(self._marked)} marked" if self._marked else ""

    def forget_marks(self) -> None:
        """No row is marked any more."""
        self._mark(self.marked_here)

    def action_internal(self) -> None:
        """Show or hide internal rows."""
        shown = "" if self.path.query.get("internal") == "yes" else "yes"
        self.path = replace(self.path, query={**self.path.query, "internal": shown})
        self.show_anew()

    def names(self, snapshot: OperatorSnapshot) -> Collection[str]:
        """Every name that a row may have."""
        raise AssertionError(f"{type(self).__name__} has no names")

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Rows, without marks of what is gone."""
        if self._marked:
            known = set(self.names(snapshot))
            self._marked = {name: None for name in self._marked if name in known}
        self.query_one(RowTable).marked = self._marked.keys()
        super().show(snapshot)

    def action_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away; the cursor goes on."""
        table = self.query_one(RowTable)
        row = table.pointed
        if row is not None:
            self._mark({row.key})
            table.action_cursor_down()

    def action_mark_all(self) -> None:
        """Mark all that the filter shows; again takes these marks away."""
        page = self.page(self.session.snapshot, self._query(limit=ROWS_MAX))
        if page.matching > len(page.rows):
            words = f"{page.matching:,} rows: at most {ROWS_MAX} are marked; filter more"
            self.notify(words, severity="warning")
        else:
            self._mark({row.key for row in page.rows})

    def _mark(self, keys: Collection[str]) -> None:
        if all(key in self._marked for key in keys):
            self._marked = {name: None for name in self._marked if name not in keys}
        else:
            self._marked |= dict.fromkeys(sorted(keys))
        self.show(self.session.snapshot)


class TopicsScreen(MarkedScreen):
    """All topics; internal ones where the path says so."""

    def names(self, snapshot: OperatorSnapshot) -> Collection[str]:
        """All topics."""
        return snapshot.cluster.topics


class GroupsScreen(MarkedScreen):
    """All groups; internal ones where the path says so."""

    def names(self, snapshot: OperatorSnapshot) -> Collection[str]:
        """All groups."""
        found: list[str] = snapshot.group_table["group_id"].to_pylist()
        return found
