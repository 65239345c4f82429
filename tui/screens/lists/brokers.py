"""The list of brokers, and how far each was from the mean of all over time."""

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from control.views.cluster.skew import broker_skew, most_skewed
from control.views.format import signed_percent_text
from control.views.snapshots.snapshot import broker_page
from control.views.tables.query import TableQuery
from tui.screens.details.history_charts import HistoryScreen
from tui.screens.lists.table_screen import TableScreen
from tui.widgets.chart import Frame

BROKERS_MAX: Final = 1_000
LOW_SCREEN: Final = 30
"""On a lower one the table needs the room."""
LINES_OF_LOW_SCREEN: Final = 3


class BrokersScreen(HistoryScreen, TableScreen):
    """A table, and below it the brokers that are furthest from the mean."""

    def compose_body(self) -> ComposeResult:
        """Table, then lines."""
        yield from super().compose_body()
        yield Static(id="history")

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """Bytes against the mean, a line each; bars tell how far, signs to which side."""
        rows = broker_page(self.session.snapshot, TableQuery(limit=BROKERS_MAX)).rows
        brokers = most_skewed(rows)
        if self.app.size.height < LOW_SCREEN:
            brokers = brokers[:LINES_OF_LOW_SCREEN]
        found = broker_skew(self.services.history, cluster, brokers, len(rows), frame.span)
        lines = [
            Text.assemble(("BYTES AGAINST THE MEAN ", "bold"), (frame.title, "dim")),
        ]
        for item in found:
            far = [None if value is None else abs(value) for value in item.values]
            lines.append(
                Text.assemble(
                    (f"{item.name:>7} ", "dim"),
                    frame.line(item, max(20, self.line_width - 20), "cyan", values=far),
                    f"  {signed_percent_text(item.newest)}",
                )
            )
        return Text("\n").join(lines) if found else Text()
