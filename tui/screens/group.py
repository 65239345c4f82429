"""One group: its partitions by lag, and how the lag went."""

from typing import Any, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from control.views.errors import StoreUnreadableError
from control.views.format import count_text
from control.views.pages import Page, TableQuery
from control.views.series import Span, total_lag
from control.views.snapshot import OperatorSnapshot, group_page, group_partition_page
from tui.screens.tables import TableScreen
from tui.tones import facts_text
from tui.widgets.sparkline import sparkline

HISTORY_MS: Final = 30 * 60_000
HISTORY_EVERY_S: Final = 3.0


class GroupScreen(TableScreen):
    """A table of partitions under a line of lag."""

    def compose_body(self) -> ComposeResult:
        """What is known of it, lag line, table."""
        yield Static(id="tiles")
        yield Static(id="lag-line")
        yield from super().compose_body()

    def on_mount(self) -> None:
        """Largest lag first."""
        self._sort = self._sort or "-lag"
        self.set_interval(HISTORY_EVERY_S, self._ask_history)
        self._ask_history()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Also its own row of the list."""
        super().show(snapshot)
        name = self.path.params["group"]
        head = Text(name, style="bold")
        found = group_page(snapshot, TableQuery(filter=f'group="{name}"', limit=1))
        if not found.rows:
            unknown = "  is not known: it may be new, or its offsets have expired (Esc goes back)"
            self.put("#tiles", head.append(unknown, style="yellow"))
            return
        facts = [(column.title, found.rows[0].cell(column.id)) for column in found.columns[1:]]
        self.put("#tiles", facts_text(head, facts, self.app.size.width - 2))

    def page(self, snapshot: OperatorSnapshot, query: TableQuery) -> Page[Any]:
        """Only this group's."""
        return group_partition_page(snapshot, query, group=self.path.params["group"])

    def _ask_history(self) -> None:
        self.run_worker(self._read_history, thread=True, exclusive=True, group="history")

    def _read_history(self) -> None:
        """In a worker thread."""
        span = Span.last(HISTORY_MS, now_ms=self.charts_until_ms)
        cluster = self.partiscope.snapshot.cluster.cluster
        try:
            lag = total_lag(self.services.history, cluster, self.path.params["group"], span)
        except StoreUnreadableError:
            return  # the feed says so as a finding
        line = Text.assemble(
            (" LAG  ", "bold"),
            (sparkline(lag.peaks, max(20, self.app.size.width - 40)), "yellow"),
            f"  {count_text(lag.last)} records  ",
            ("last 30 min", "dim"),
        )
        self.app.call_from_thread(self._show_lag, line)

    def _show_lag(self, line: Text) -> None:
        if self.is_mounted:
            self.put("#lag-line", line)
