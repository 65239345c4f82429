"""Alerts that fire and whom they were told to; silences, and the keys that begin and end them."""

from textual.app import ComposeResult
from textual.widgets import Static

from control.views.alert_tables import OF_A_CLUSTER, SILENCES
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.query import Page
from tui.screens.base import ViewScreen, heading
from tui.widgets.row_table import RowTable


class AlertsScreen(ViewScreen):
    """``S`` silences the alert under the cursor, ``L`` ends the silence under it; Tab goes to the
    other table."""

    DEFAULT_CSS = """
    AlertsScreen #table { height: 2fr; }
    AlertsScreen #silences { height: 1fr; }
    """

    def compose_body(self) -> ComposeResult:
        """Two tables."""
        yield Static(id="alerts-title", classes="title")
        yield RowTable(id="table")
        yield Static(id="silences-title", classes="title")
        yield RowTable(id="silences")

    def on_mount(self) -> None:
        """The alerts have the keys."""
        self.query_one("#table").focus()

    @property
    def given_here(self) -> dict[str, str]:
        """Names of the alert or the silence under the cursor, by the fields of forms."""
        for table in self.query(RowTable):
            if table.has_focus and table.pointed is not None:
                return self.session.snapshot.alerts.given_of(table.pointed)
        return {}

    def show(self, snapshot: OperatorSnapshot) -> None:
        """As the bus told them last."""
        told, now_ms = snapshot.alerts, snapshot.built_ms
        alerts, silences = told.alert_rows(now_ms), told.silence_rows(now_ms)
        nobody = "" if told.is_delivered else "  nobody delivers alerts from here"
        self.put("#alerts-title", heading("ALERTS", f"{len(alerts)}{nobody}"))
        self.put("#silences-title", heading("SILENCES", f"{len(silences)}  S silences, L ends"))
        self.query_one("#table", RowTable).show(Page.whole(alerts, OF_A_CLUSTER))
        self.query_one("#silences", RowTable).show(Page.whole(silences, SILENCES.columns))
