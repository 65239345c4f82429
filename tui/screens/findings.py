"""All findings, with reasons and next steps."""

from typing import Any

from textual.app import ComposeResult

from control.views import columns
from control.views.actions import action_of
from control.views.pages import Page
from control.views.paths import ViewPath, parse_path
from control.views.rows import FindingRow
from control.views.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen
from tui.widgets.row_table import RowTable


class FindingsScreen(ViewScreen):
    """One row a finding; Enter opens what it is about."""

    def compose_body(self) -> ComposeResult:
        """The table."""
        yield RowTable(id="all-findings")

    @property
    def plan_here(self) -> ViewPath:
        """What mends the finding under the cursor."""
        row = self.query_one(RowTable).pointed
        if isinstance(row, FindingRow):
            path = parse_path(action_of(row).path)
            if path.view == "plan":
                return path
        return super().plan_here

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Worst first, as the snapshot has them."""
        rows = snapshot.finding_rows
        page: Page[Any] = Page(
            rows=rows, columns=columns.FINDING_COLUMNS, total=len(rows), matching=len(rows)
        )
        self.query_one(RowTable).show(page)
