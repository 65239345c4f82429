"""``g c``: all watched clusters side by side; Enter goes to one."""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult
from textual.widgets import Static

from control.views.cluster.all_clusters import CLUSTERS, cluster_rows
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.query import Page
from tui.screens.base import ViewScreen, heading
from tui.widgets.row_table import RowTable

READ_EVERY_S: Final = 2.0


class AllClustersScreen(ViewScreen):
    """The others are read only while this view is open."""

    def compose_body(self) -> ComposeResult:
        """The table."""
        yield Static("[b]CLUSTERS[/b]  reading …", id="clusters-title", classes="title")
        yield RowTable(id="table")

    def on_mount(self) -> None:
        """Read them now and then again."""
        self.query_one(RowTable).focus()
        self.set_interval(READ_EVERY_S, self._ask)
        self._ask()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """All of them, as they were last read."""
        known = [(each.watched, each.feed.current) for each in self.session.every_services]
        rows = cluster_rows(known, now_ms=self.session.now_ms)
        self.put("#clusters-title", heading("CLUSTERS", f" {len(rows)}"))
        page = Page.whole(rows, CLUSTERS.columns)
        self.query_one(RowTable).show(page)

    def _ask(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True, group="clusters")

    def _read(self) -> None:
        """In a worker thread."""
        for each in self.session.every_services:
            each.feed.refresh()
        self.app.call_from_thread(self._show_again)

    def _show_again(self) -> None:
        if self.is_attached:
            self.show(self.session.snapshot)
