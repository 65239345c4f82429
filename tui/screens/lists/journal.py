"""The journal: who changed what, when and why; Enter opens a reassignment, where it was one."""

import asyncio
from typing import Final

from textual.app import ComposeResult
from textual.widgets import Static

from control.kafka.errors import KafkaPortError
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.journal import JOURNAL
from control.views.tables.query import Page
from tui.screens.base import ViewScreen, heading
from tui.widgets.row_table import RowTable

READ_EVERY_S: Final = 3.0
LINES_MAX: Final = 500


class JournalScreen(ViewScreen):
    """The newest line first."""

    def compose_body(self) -> ComposeResult:
        """The table."""
        yield Static("[b]JOURNAL[/b]  reading …", id="journal-title", classes="title")
        yield RowTable(id="table")

    def on_mount(self) -> None:
        """Read the bus now and then again."""
        self.query_one(RowTable).focus()
        self.run_worker(self._keep_reading, group="journal")

    def show(self, snapshot: OperatorSnapshot) -> None:
        """The journal comes from the bus of operations, not from the aggregates."""

    async def _keep_reading(self) -> None:
        """One after the other: a bus that is away takes its time to be given up."""
        while True:
            await self._read()
            await asyncio.sleep(READ_EVERY_S)

    async def _read(self) -> None:
        try:
            lines = await self.session.operations.journal.lines()
        except KafkaPortError as error:
            self.put("#journal-title", heading("JOURNAL", f" ✖ {error.title}: {error.next_step}"))
            return
        rows = tuple(JOURNAL.row(line) for line in lines[:LINES_MAX])
        hint = "" if rows else "  nothing was changed yet"
        unreadable = self.session.operations.journal.unreadable
        left_out = f"  ▲ {unreadable}" if unreadable else ""
        self.put("#journal-title", heading("JOURNAL", f"{len(lines)}{hint}{left_out}"))
        page = Page.whole(rows, JOURNAL.columns)
        if self.is_attached:
            self.query_one(RowTable).show(page)
