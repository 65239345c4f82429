"""The alerts of the terminal: keys begin and end what stands under the cursor."""

from dataclasses import replace
from typing import Any

from control.views.snapshots.feed import SnapshotFeed
from tests.support.settle import settle
from tests.unit.control.views.test_alert_tables import ANNAS, LONGER, TOLD
from tests.unit.tui.conftest import NOW_MS, services, written_store
from tui.app import PartiscopeApp
from tui.terminal_session import Services
from tui.widgets.form import FormPanel
from tui.widgets.row_table import RowTable

__all__ = ["services", "written_store"]


class Bus:
    """The bus tells of two alerts, a silence and a window."""

    findings = ()
    moves = ()
    alerts = replace(
        TOLD,
        silences=(replace(ANNAS, until_ms=NOW_MS + 1_000),),
        windows=(replace(LONGER, until_ms=NOW_MS + 2_000),),
    )

    def start(self) -> None:
        """It is there."""

    def stop(self) -> None:
        """Likewise."""


async def _values(app: PartiscopeApp, pilot: Any, key: str) -> dict[str, str]:
    await pilot.press(key)
    await settle(pilot, lambda: bool(app.screen.query(FormPanel)), "the form")
    values = dict(app.screen.query_one(FormPanel).values())
    app.pop_screen()
    return values


async def test_keys_silence_the_alert_and_end_the_silence_under_the_cursor(
    services: Services,
) -> None:
    operations: Any = Bus()
    feed = SnapshotFeed(services.history, now_ms=lambda: NOW_MS, operations=operations)
    feed.refresh()
    app = PartiscopeApp(replace(services, feed=feed), path="alerts")
    async with app.run_test(size=(100, 30)) as pilot:
        table = app.screen.query_one("#table", RowTable)
        await settle(pilot, lambda: table.row_count == 2 and table.has_focus, "the alerts")
        asked = await _values(app, pilot, "S")
        assert (asked["rule"], asked["subject"], asked["cluster"]) == ("lag", "billing", "prod")
        await pilot.press("tab")
        silences = app.screen.query_one("#silences", RowTable)
        await settle(pilot, lambda: silences.has_focus, "the silences")
        assert (await _values(app, pilot, "L"))["silence"] == "si-1"
        await pilot.press("down")
        assert (await _values(app, pilot, "L"))["silence"] == "", "a window ends in the settings"
    feed.stop()
