"""The overview: findings, brokers, groups, throughput; is anything wrong, where, what now?"""

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from control.views.cluster.racks import RACKS, rack_rows
from control.views.format import plural_text
from control.views.next_steps import action_of
from control.views.paths import ViewPath, parse_path
from control.views.series import Series, cluster_throughput, total_lag
from control.views.snapshots.snapshot import OperatorSnapshot, broker_page, group_page
from control.views.tables.brokers import state_away
from control.views.tables.query import Page, TableQuery
from control.views.tables.rows import Row
from tui.screens.base import heading
from tui.screens.details.history_charts import HistoryScreen, throughput_line
from tui.tones import STYLES, cell_text
from tui.widgets.chart import Frame
from tui.widgets.findings import FindingsList
from tui.widgets.row_table import RowTable
from tui.widgets.sparkline import bar

BROKERS_MAX: Final = 100
GROUPS_MAX: Final = 50
LAGS_MAX: Final = 2
TABLE_LINES_MAX: Final = 12
"""Of brokers, groups and racks; the style sheet says the same."""
OTHER_LINES: Final = 12
"""Bars, titles and charts."""
RACKS_FROM_LINES: Final = 30
"""On a lower screen brokers and groups need the room."""


class OverviewScreen(HistoryScreen):
    """The first screen."""

    HISTORY_LINE = "#throughput"

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
        """The brokers have the keys."""
        self.query_one("#brokers", RowTable).focus()

    def prepare(self, snapshot: OperatorSnapshot) -> None:
        """Brokers and groups."""
        super().prepare(snapshot)
        _ = snapshot.broker_table, snapshot.group_table

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Every block."""
        brokers = broker_page(snapshot, TableQuery(limit=BROKERS_MAX))
        groups = group_page(snapshot, TableQuery(limit=GROUPS_MAX, hides_internal=True))
        self.put("#brokers-title", _totals(snapshot, brokers.total, self.line_width))
        self.query_one("#brokers", RowTable).show(brokers)
        self.put("#bytes", self._bytes(list(brokers.rows)))
        racks = rack_rows(brokers.rows) if brokers.total <= BROKERS_MAX else ()
        self._racks(racks)
        self._title("groups", groups.total)
        self.query_one("#groups", RowTable).show(groups)
        tables = (min(len(it) + 1, TABLE_LINES_MAX) for it in (brokers.rows, groups.rows, racks))
        room = self.app.size.height - sum(tables) - OTHER_LINES
        self.query_one(FindingsList).show(snapshot, room=room)

    def on_resize(self) -> None:
        """Findings and racks by the room there is now."""
        if self._put:
            self.show(self.session.snapshot)

    @property
    def group_here(self) -> str:
        """The group under the cursor."""
        return self.query_one("#groups", RowTable).name_of("group")

    @property
    def plan_here(self) -> ViewPath:
        """The plan that mends the finding under the cursor, or the first that a plan mends."""
        strip = self.query_one(FindingsList)
        pointed = strip.pointed
        rows = [pointed] if pointed else list(self.session.snapshot.finding_rows)
        plans = (parse_path(action_of(row).path) for row in rows)
        return next((path for path in plans if path.view == "plan"), super().plan_here)

    @property
    def loss_here(self) -> ViewPath:
        """The broker under the cursor."""
        pointed = self.query_one("#brokers", RowTable).pointed
        broker = "" if pointed is None else pointed.key
        return ViewPath(view="what-if", query={"broker": broker})

    def _title(self, name: str, count: int) -> None:
        self.put(f"#{name}-title", heading(name.upper(), str(count)))

    def _racks(self, rows: tuple[Row, ...]) -> None:
        """Where there are any, and room for them."""
        is_shown = len(rows) > 1 and self.app.size.height >= RACKS_FROM_LINES
        for block in (self.query_one("#racks-title"), self.query_one("#racks")):
            block.display = is_shown
        if is_shown:
            self._title("racks", len(rows))
            page = Page.whole(rows, RACKS.columns)
            self.query_one("#racks", RowTable).show(page)

    def _bytes(self, rows: list[Row]) -> Text:
        known = [(row, float(row.size_bytes.value or 0)) for row in rows]
        top = max((size for _, size in known), default=0.0)
        if not top:
            return Text("")
        room = max(6, (self.size.width - 8) // max(1, len(known)) - 10)
        line = Text(" bytes  ", style="dim")
        for row, size in known[: max(1, self.size.width // 16)]:
            line.append(f"{row.broker.value} ")
            away, is_known = state_away(row), row.size_bytes.value is not None
            shown = bar(size / top, room) if is_known else row.size_bytes.text
            style = STYLES[row.status.tone] if away else STYLES[row.skew.tone]
            line.append((away or shown).ljust(room), style=style)
            line.append("  ")
        return line

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """Throughput, and the lag of the groups with the most of it."""
        history, width = self.services.history, self.line_width
        moved = cluster_throughput(history, cluster, frame.span)
        lines = [throughput_line(moved, frame, width)]
        query = TableQuery(sort="-lag", limit=LAGS_MAX, hides_internal=True)
        rows = group_page(self.session.snapshot, query).rows
        names = [row.key for row in rows if row.lag.value]
        found = [total_lag(history, cluster, name, frame.span) for name in names]
        lines += [_lag_line(item, frame, width) for item in found]
        return Text("\n").join(lines)


def _totals(snapshot: OperatorSnapshot, brokers: int, width: int) -> Text:
    """How many brokers, and what they hold together."""
    head = snapshot.headline
    facts = (("topics", head.topics), ("partitions", head.partitions),
             ("replicas", head.replicas), ("bytes", head.size_bytes))  # fmt: skip
    line = Text.assemble(("BROKERS", "bold"), f" {brokers}")
    if head.moving.value:
        line.append("   ").append_text(cell_text(head.moving))
    for name, cell in facts:
        fact = Text(f"   {name} ", style="dim").append(cell.text, style="")
        if line.cell_len + fact.cell_len <= width:
            line.append_text(fact)
    return line


def _lag_line(lag: Series, frame: Frame, width: int) -> Text:
    """One group's."""
    head, now = f"LAG {lag.name:<16.16} ", f" {plural_text(lag.newest, 'record')}"
    room = max(8, width - len(head) - len(now))
    return Text.assemble((head[:4], "bold"), head[4:], frame.line(lag, room, "yellow"), now)
