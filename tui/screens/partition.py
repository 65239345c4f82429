"""One partition: facts, replicas, the groups that read it, history, segments."""

from typing import Any, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static, TabbedContent, TabPane

from control.model.ids import TopicPartition
from control.views import columns
from control.views.errors import StoreUnreadableError
from control.views.format import byte_rate_text, bytes_text, count_text, record_rate_text
from control.views.pages import Page
from control.views.paths import ViewPath
from control.views.rows import PartitionRow, Row, SegmentRow
from control.views.series import Series, Span, group_lag, partition_series
from control.views.snapshot import (
    OperatorSnapshot,
    groups_of_partition,
    partition_row,
    replica_rows,
    segment_rows,
)
from tui.screens.base import ViewScreen
from tui.tones import facts_text
from tui.widgets.row_table import RowTable
from tui.widgets.sparkline import bar, sparkline

HISTORY_MS: Final = 30 * 60_000
HISTORY_EVERY_S: Final = 3.0
_UNIT_TEXTS: Final = {
    "bytes/s": byte_rate_text,
    "records/s": record_rate_text,
    "bytes": bytes_text,
}


class PartitionScreen(ViewScreen):
    """Tiles above tabs."""

    def __init__(self, path: ViewPath) -> None:
        super().__init__(path)
        self._partition = TopicPartition(path.params["topic"], int(path.params["partition"]))

    def compose_body(self) -> ComposeResult:
        """Tiles, then one tab per question."""
        yield Static(id="tiles")
        with TabbedContent(id="tabs"):
            with TabPane("replicas", id="replicas-tab"):
                yield RowTable(id="replicas", opens=False)
            with TabPane("groups", id="groups-tab"):
                yield RowTable(id="partition-groups", opens=False)
            with TabPane("history", id="history-tab"), VerticalScroll():
                yield Static("reading the history …", id="history")
            with TabPane("segments", id="segments-tab"), VerticalScroll():
                yield Static(id="segments")

    def on_mount(self) -> None:
        """The tab that the path names is open."""
        if self.path.view == "segments":
            self.query_one(TabbedContent).active = "segments-tab"
        self.set_interval(HISTORY_EVERY_S, self._ask_history)
        self._ask_history()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Everything but the history, which is read beside."""
        row = partition_row(snapshot, self._partition)
        tiles = self.query_one("#tiles", Static)
        if row is None:
            tiles.update(f"[b]{self._partition}[/b]  there is no such partition (Esc goes back)")
            return
        tiles.update(_tiles(self._partition, row, self.app.size.width - 2))
        replicas, groups = replica_rows(snapshot, self._partition), self._groups(snapshot)
        self.query_one("#replicas", RowTable).show(_page(replicas, columns.REPLICA_COLUMNS))
        self.query_one("#partition-groups", RowTable).show(
            _page(groups, columns.GROUP_OF_PARTITION_COLUMNS)
        )
        width = max(10, self.size.width - 50)
        segments = segment_rows(snapshot, self._partition)
        self.put("#segments", _segments(segments, width))

    def _groups(self, snapshot: OperatorSnapshot) -> tuple[Row, ...]:
        return groups_of_partition(snapshot, self._partition)

    def _ask_history(self) -> None:
        self.run_worker(self._read_history, thread=True, exclusive=True, group="history")

    def _read_history(self) -> None:
        """In a worker thread."""
        snapshot, history = self.partiscope.snapshot, self.services.history
        cluster = snapshot.cluster.cluster
        span = Span.last(HISTORY_MS, now_ms=self.charts_until_ms)
        try:
            series = list(partition_series(history, cluster, self._partition, span))
            for group in {
                str(row.group.value) for row in groups_of_partition(snapshot, self._partition)
            }:
                (lag,) = group_lag(history, cluster, group, span, only=self._partition) or (None,)
                if lag is not None:
                    series.append(Series(
                        name=f"lag {group}", unit=lag.unit, at_ms=lag.at_ms, values=lag.values
                    ))  # fmt: skip
        except StoreUnreadableError as error:
            self.app.call_from_thread(self._show_history, Text(str(error)))
            return
        text = _history(series, max(20, self.app.size.width - 40))
        self.app.call_from_thread(self._show_history, text)

    def _show_history(self, text: Text) -> None:
        if self.is_mounted:
            self.put("#history", text)


def _page(rows: tuple[Any, ...], shown: tuple[columns.Column, ...]) -> Page[Any]:
    return Page(rows=rows, columns=shown, total=len(rows), matching=len(rows))


def _tiles(name: TopicPartition, row: PartitionRow, width: int) -> Text:
    facts = (
        ("status", row.status),
        ("leader", row.leader),
        ("ISR", row.isr),
        ("bytes", row.size_bytes),
        ("records", row.records),
        ("in/s", row.in_bytes),
        ("segments", row.segments),
        ("high watermark", row.high_watermark),
        ("lag", row.lag),
    )
    return facts_text(Text(f"{name.topic}-{name.partition}", style="bold"), facts, width)


def _segments(rows: tuple[SegmentRow, ...], width: int) -> Text:
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


def _history(series: list[Series], width: int) -> Text:
    lines = []
    for item in series:
        to_text = _UNIT_TEXTS.get(item.unit, count_text)
        lines.append(
            Text.assemble(
                (f"{item.name:<18.18} ", "dim"),
                (sparkline(item.peaks, width), "cyan"),
                f"  {to_text(item.last)}",
            )
        )
    lines.append(Text("the last 30 minutes, newest on the right", style="dim"))
    return Text("\n").join(lines)
