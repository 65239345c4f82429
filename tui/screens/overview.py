"""The overview: findings, brokers, groups, throughput; is anything wrong, where, what now?"""

from typing import Any, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from control.views.actions import action_of
from control.views.errors import StoreUnreadableError
from control.views.format import byte_rate_text
from control.views.pages import Page, TableQuery
from control.views.paths import ViewPath, parse_path
from control.views.racks import RACK_COLUMNS, RackRow, rack_rows
from control.views.rows import BrokerRow
from control.views.series import Span, cluster_throughput
from control.views.snapshot import OperatorSnapshot, broker_page, group_page
from tui.screens.base import ViewScreen
from tui.tones import STYLES
from tui.widgets.findings import FindingsList
from tui.widgets.row_table import RowTable
from tui.widgets.sparkline import bar, sparkline

BROKERS_MAX: Final = 100
GROUPS_MAX: Final = 50
HISTORY_MS: Final = 10 * 60_000
RACKS_FROM_LINES: Final = 30
"""On a lower screen brokers and groups need the room."""


class OverviewScreen(ViewScreen):
    """The first screen."""

    def compose_body(self) -> ComposeResult:
        """Blocks in the order of the page."""
        with VerticalScroll(id="overview", can_focus=False):
            yield FindingsList(id="findings")
            yield Static(id="brokers-title")
            yield RowTable(id="brokers")
            yield Static(id="bytes")
            yield Static(id="groups-title")
            yield RowTable(id="groups")
            yield Static(id="racks-title")
            yield RowTable(id="racks")
            yield Static(id="throughput")

    def on_mount(self) -> None:
        """Start the history beside the snapshot."""
        self.query_one("#brokers", RowTable).focus()
        self.set_interval(2.0, self._ask_history)
        self._ask_history()

    def prepare(self, snapshot: OperatorSnapshot) -> None:
        """Brokers and groups."""
        super().prepare(snapshot)
        _ = snapshot.broker_table, snapshot.group_table

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Every block."""
        brokers = broker_page(snapshot, TableQuery(limit=BROKERS_MAX))
        groups = group_page(snapshot, TableQuery(sort="-lag", limit=GROUPS_MAX))
        self.query_one(FindingsList).show(snapshot)
        self._title("brokers", brokers.total)
        self.query_one("#brokers", RowTable).show(brokers)
        self.put("#bytes", self._bytes(list(brokers.rows)))
        self._racks(rack_rows(brokers.rows) if brokers.total <= BROKERS_MAX else ())
        self._title("groups", groups.total)
        self.query_one("#groups", RowTable).show(groups)

    @property
    def group_here(self) -> str:
        """The group under the cursor."""
        return self.query_one("#groups", RowTable).name_of("group")

    @property
    def plan_here(self) -> ViewPath:
        """What mends the finding under the cursor, or the first that a plan mends."""
        strip = self.query_one(FindingsList)
        pointed = strip.pointed
        rows = [pointed] if pointed else list(self.partiscope.snapshot.finding_rows)
        plans = (parse_path(action_of(row).path) for row in rows)
        return next((path for path in plans if path.view == "plan"), super().plan_here)

    @property
    def loss_here(self) -> ViewPath:
        """The broker under the cursor."""
        pointed = self.query_one("#brokers", RowTable).pointed
        broker = "" if pointed is None else pointed.key
        return ViewPath(view="what-if", query={"broker": broker})

    def _title(self, name: str, count: int) -> None:
        self.put(f"#{name}-title", f"[b]{name.upper()}[/b] {count}")

    def _racks(self, rows: tuple[RackRow, ...]) -> None:
        """Where there are any, and room for them."""
        is_shown = len(rows) > 1 and self.app.size.height >= RACKS_FROM_LINES
        for block in (self.query_one("#racks-title"), self.query_one("#racks")):
            block.display = is_shown
        if is_shown:
            self._title("racks", len(rows))
            page = Page(rows=rows, columns=RACK_COLUMNS, total=len(rows), matching=len(rows))
            self.query_one("#racks", RowTable).show(page)

    def _bytes(self, rows: list[BrokerRow]) -> Text:
        known = [(row, float(row.size_bytes.value or 0)) for row in rows]
        top = max((size for _, size in known), default=0.0)
        if not top:
            return Text("")
        room = max(6, (self.size.width - 8) // max(1, len(known)) - 10)
        line = Text(" bytes  ", style="dim")
        for row, size in known[: max(1, self.size.width // 16)]:
            line.append(f"{row.broker.value} ")
            line.append(bar(size / top, room).ljust(room), style=STYLES[row.skew.tone])
            line.append("  ")
        return line

    def _ask_history(self) -> None:
        self.run_worker(self._read_history, thread=True, exclusive=True, group="history")

    def _read_history(self) -> None:
        """In a worker thread: the last ten minutes; the line is made here, shown in the loop."""
        snapshot = self.partiscope.snapshot
        span = Span.last(HISTORY_MS, now_ms=self.charts_until_ms)
        try:
            series = cluster_throughput(self.services.history, snapshot.cluster.cluster, span)
        except StoreUnreadableError:
            return  # the feed says so as a finding
        self.app.call_from_thread(self._show_throughput, series)

    def _show_throughput(self, series: Any) -> None:
        if not self.is_mounted:
            return
        room = max(10, (self.size.width - 62) // 2)
        line = Text.assemble(("THROUGHPUT", "bold"), "  ")
        for item in series[:2]:
            line.append(f"{item.name} ", style="dim")
            line.append(sparkline(item.peaks, room), style="cyan")
            line.append(f" {byte_rate_text(item.last)}  ")
        line.append("last 10 min", style="dim")
        self.put("#throughput", line)
