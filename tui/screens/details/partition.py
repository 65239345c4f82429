"""One partition: facts, replicas, the groups that read it, history, segments."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static, TabbedContent, TabPane

from control.model.ids import TopicPartition
from control.views.format import byte_rate_text, bytes_text, count_text, record_rate_text
from control.views.paths import ViewPath
from control.views.series import Series, group_lag, named, partition_series
from control.views.snapshots.snapshot import (
    OperatorSnapshot,
    groups_of_partition,
    partition_row,
    replica_rows,
    segment_rows,
)
from control.views.tables.commits import GROUPS_OF_PARTITION
from control.views.tables.partition_parts import REPLICAS
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import Page
from control.views.tables.rows import Row
from tui.screens.base import heading
from tui.screens.details.history_charts import HistoryScreen
from tui.terminal_session import TerminalSession
from tui.tones import facts_text
from tui.widgets.chart import Frame
from tui.widgets.row_table import RowTable
from tui.widgets.sparkline import bar

NO_GROUPS: Final = "no group has committed an offset here"
TABS: Final = ("replicas", "groups", "history", "segments")
_UNIT_TEXTS: Final = {
    "bytes/s": byte_rate_text,
    "records/s": record_rate_text,
    "bytes": bytes_text,
}


class PartitionScreen(HistoryScreen):
    """Tiles above tabs; a digit or ← → chooses one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(number), f"tab({name!r})", name, show=True)
        for number, name in enumerate(TABS, 1)
    ]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._partition = TopicPartition(path.params["topic"], int(path.params["partition"]))

    def compose_body(self) -> ComposeResult:
        """Tiles, then one tab per question."""
        yield Static(id="tiles")
        with TabbedContent(id="tabs"):
            with TabPane("replicas", id="replicas-tab"):
                yield RowTable(id="replicas", opens=False)
            with TabPane("groups", id="groups-tab"):
                yield Static(NO_GROUPS, id="no-groups", classes="hint")
                yield RowTable(id="partition-groups", opens=False)
            with TabPane("history", id="history-tab"), VerticalScroll():
                yield Static("reading the history …", id="history")
            with TabPane("segments", id="segments-tab"), VerticalScroll():
                yield Static(id="segments")

    def on_mount(self) -> None:
        """The tab that the path names is open."""
        if self.path.view == "segments":
            self.action_tab("segments")

    def action_tab(self, name: str) -> None:
        """Open one of the tabs."""
        self.query_one(TabbedContent).active = f"{name}-tab"

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Everything but the history, which is read beside."""
        row = partition_row(snapshot, self._partition)
        tiles = self.query_one("#tiles", Static)
        if row is None:
            tiles.update(
                heading(str(self._partition), " there is no such partition (Esc goes back)")
            )
            return
        name = Text(str(self._partition), style="bold")
        tiles.update(facts_text(name, PARTITIONS.facts(row), self.app.size.width - 2))
        replicas, groups = replica_rows(snapshot, self._partition), self._groups(snapshot)
        self.query_one("#replicas", RowTable).show(Page.whole(replicas, REPLICAS.columns))
        self.query_one("#partition-groups", RowTable).show(Page.whole(groups, GROUPS_OF_PARTITION))
        self.query_one("#no-groups").display = not groups
        self.query_one("#partition-groups").display = bool(groups)
        width = max(10, self.size.width - 50)
        segments = segment_rows(snapshot, self._partition)
        self.put("#segments", _segments(segments, width))

    def _groups(self, snapshot: OperatorSnapshot) -> tuple[Row, ...]:
        return groups_of_partition(snapshot, self._partition)

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """Throughput, size, replicas in sync, and the lag of each group."""
        snapshot, history = self.session.snapshot, self.services.history
        found = list(partition_series(history, cluster, self._partition, frame.span))
        groups = {str(row.group.value) for row in groups_of_partition(snapshot, self._partition)}
        for group in sorted(groups):
            lags = group_lag(history, cluster, group, frame.span, only=self._partition)
            found += [named(lag, f"lag {group}") for lag in lags]
        return _history(found, max(20, self.line_width - 38), frame)


def _segments(rows: tuple[Row, ...], width: int) -> Text:
    if not rows:
        return Text("n/a: this broker does not tell its segments", style="dim")
    top = max(float(row.size_bytes.value or 0) for row in rows) or 1.0
    lines = [
        Text.assemble(
            f"{row.number.text:>4}  {row.base_offset.text:>20}  {row.size_bytes.text:>10}  ",
            (bar(float(row.size_bytes.value or 0) / top, width), "cyan"),
            f"  {row.state.text}",
        )
        for row in rows
    ]
    head = Text("   #           base offset       bytes", style="dim")
    return Text("\n").join([head, *lines])


def _history(series: list[Series], width: int, frame: Frame) -> Text:
    lines = []
    for item in series:
        to_text = _UNIT_TEXTS.get(item.unit, count_text)
        lines.append(
            Text.assemble(
                (f"{item.name:<18.18} ", "dim"),
                frame.line(item, width, "cyan"),
                f"  {to_text(item.newest)}",
            )
        )
    lines.append(Text(f"{frame.title}, newest on the right", style="dim"))
    return Text("\n").join(lines)
