"""All findings, with reasons and next steps."""

from typing import Final

from textual.app import ComposeResult

from control.views.next_steps import action_of
from control.views.paths import ViewPath, parse_path
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen
from tui.widgets.findings import FindingsList

SHOWN_MAX: Final = 500


class FindingsScreen(ViewScreen):
    """Worst first; Enter opens what one is about."""

    def compose_body(self) -> ComposeResult:
        """The list."""
        yield FindingsList(id="all-findings", shown_max=SHOWN_MAX, has_reasons=True)

    def on_mount(self) -> None:
        """The list has the keys."""
        self.query_one(FindingsList).focus()

    @property
    def plan_here(self) -> ViewPath:
        """The plan that mends the finding under the cursor."""
        row = self.query_one(FindingsList).pointed
        path = super().plan_here if row is None else parse_path(action_of(row).path)
        return path if path.view == "plan" else super().plan_here

    def show(self, snapshot: OperatorSnapshot) -> None:
        """As the snapshot has them."""
        strip = self.query_one(FindingsList)
        strip.show(snapshot)
        if self.focused is None:  # without findings it takes no keys
            strip.focus()
