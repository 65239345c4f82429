"""The map partition by partition: each is one cell, darker where more is."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from control.views.cluster.partition_map import MEASURES, partition_map
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.filters import FilterError
from tui.messages import PathChosen
from tui.screens.maps.map_base import MeasuredMap
from tui.terminal_session import TerminalSession
from tui.widgets.heat_table import SHADES
from tui.widgets.partition_map import CellsMap

MARGIN: Final = 3
"""Columns beside the cells: margins and scrollbar."""


class CellsScreen(MeasuredMap):
    """Enter opens the partition; ``m`` or a digit takes another measure, ``b`` the other map."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "by_topics", "by topic", show=True),
    ]

    words: ClassVar = MEASURES

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._filter = path.query.get("q", "")

    def compose_body(self) -> ComposeResult:
        """Title, value under the cursor, cells."""
        yield Static(id="map-title", classes="title")
        yield Static(id="cell-under")
        yield CellsMap(id="cells")

    def on_mount(self) -> None:
        """The cells have the keys."""
        self.query_one(CellsMap).focus()

    def on_resize(self) -> None:
        """As many cells in a row as there is room for."""
        self.receive(self.session.snapshot)

    @property
    def topic_here(self) -> str:
        """Topic of the cell under the cursor."""
        record = self.query_one(CellsMap).pointed
        return "" if record is None else str(record["topic"])

    def prepare(self, snapshot: OperatorSnapshot) -> None:
        """The table behind the cells."""
        super().prepare(snapshot)
        _ = snapshot.partition_table

    def show(self, snapshot: OperatorSnapshot) -> None:
        """The present measure of what passes the filter."""
        title = self.measures_title()
        title.append(f" a cell per partition, {SHADES[1]} to {SHADES[-1]}", style="dim")
        columns = max(10, self.app.size.width - MARGIN)
        try:
            found = partition_map(snapshot, self._measure, filter=self._filter, columns=columns)
        except FilterError as error:
            self.put("#map-title", title)
            self.put("#cell-under", Text(f"▲ {error}", style="yellow"))
            return
        if self._filter:
            title.append(f"  {self._filter}: {len(found.values):,}")
        self.put("#map-title", title)
        self.query_one(CellsMap).show(found)

    def on_cells_map_cell_pointed(self, message: CellsMap.CellPointed) -> None:
        """Its name, value and leader."""
        record = message.record
        if record is None:
            self.put("#cell-under", Text("no partition is known yet", style="dim"))
            return
        leader = record["leader"] if record["leader"] >= 0 else "none"
        words = f"  {record['words']}, leader {leader}"
        self.put(
            "#cell-under",
            Text.assemble((f"{record['topic']}-{record['partition']}", "bold"), words),
        )

    def action_by_topics(self) -> None:
        """Topic by broker."""
        self.post_message(PathChosen("map", is_instead=True))
