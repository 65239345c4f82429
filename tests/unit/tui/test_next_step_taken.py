"""``d`` on a finding takes its next step: a view, a form, or a word that it is not done here."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.settle import settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.screens.dialogs.operation import OperationScreen
from tui.screens.messages.browse import BrowseScreen
from tui.terminal_session import Services
from tui.widgets.findings import FindingsList

LAGS: dict[str, Any] = {"lag": 50, "committed_offset": 50, "end_offset": 100, "member_id": "m"}


@pytest.mark.parametrize(
    ("figures", "screen"),
    [
        ({**LAGS, "status": "STALL"}, BrowseScreen),
        ({**LAGS, "status": "BEYOND", "lag": 0, "committed_offset": 400}, OperationScreen),
        ({**LAGS, "status": "STOP", "member_id": None}, None),
    ],
)
async def test_d_takes_the_next_step(
    figures: dict[str, Any], screen: type | None, services: Services, tmp_path: Path
) -> None:
    rows = synthetic_rows(SyntheticSizes(topics=1, partitions=1, groups=1), at_ms=NOW_MS)
    rows["commits"] = [{**rows["commits"][0], **figures}]
    StoreBuilder(tmp_path).write(rows)
    app = PartiscopeApp(services, path="findings")
    async with app.run_test(size=(120, 40)) as pilot:
        strip = app.screen.query_one(FindingsList)
        await settle(pilot, lambda: strip.has_focus, "the list")
        names = [row.label.text for row in app.session.snapshot.finding_rows]
        strip.highlighted = names.index("group-0")
        before = app.screen
        await pilot.press("d")
        if screen is None:
            await settle(pilot, lambda: bool(app._notifications), "why nothing opens")
            assert app.screen is before
        else:
            await settle(pilot, lambda: isinstance(app.screen, screen), f"{screen}")
