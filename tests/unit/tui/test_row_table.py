"""Which columns a table shows, and what becomes of texts that are longer than the screen."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.widgets import OptionList

from control.views.tables.messages import MESSAGES, message_row
from control.views.tables.query import Page
from tests.snapshots.canned import records
from tests.support.settle import settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.terminal_session import Services
from tui.widgets.row_table import RowTable

LONG = b'{"order": 4711, "note": "' + b"x" * 300 + b'"}'


class _OneTable(App[None]):
    def compose(self) -> ComposeResult:
        yield RowTable(id="table", opens=False)


def _page() -> Page:
    rows = tuple(message_row(replace(record, value=LONG)) for record in records())
    return Page.whole(rows, MESSAGES.columns)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, ("partition", "offset", "record_key", "record_value")),
        (120, ("partition", "offset", "at", "record_key", "record_value")),
    ],
)
async def test_a_long_value_leaves_room_for_its_key_and_is_cut(
    width: int, shown: tuple[str, ...]
) -> None:
    app = _OneTable()
    async with app.run_test(size=(width, 24)) as pilot:
        table = app.query_one(RowTable)
        table.show(_page())
        await settle(pilot, lambda: table.virtual_size.width > 0, "the table is measured")
        assert table.shown[: len(shown)] == shown
        assert table.virtual_size.width <= width
        value = table.get_row_at(0)[len(shown) - 1]
        assert str(value).endswith("…")
        assert len(value) >= 40

        await pilot.resize_terminal(width + 30, 24)
        await settle(pilot, lambda: width < table.virtual_size.width <= width + 30, "more is shown")


@pytest.mark.parametrize("name", ["t" * 249, "prod.orders.payment-events.v2", "グループ" * 20])
async def test_a_long_name_leaves_room_for_figures(
    services: Services, tmp_path: Path, name: str
) -> None:
    now = synthetic_rows(SyntheticSizes(topics=3, partitions=2, groups=3), at_ms=NOW_MS)
    for row in (*now["groups"], *now["commits"]):
        row["group_id"] = row["group_id"].replace("group-1", name)
    StoreBuilder(tmp_path).write(now)
    app = PartiscopeApp(services, path="groups")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#table")), "the table")
        table = app.screen.query_one(RowTable)
        services.feed.refresh()
        await settle(pilot, lambda: table.row_count == 3, "its rows")
        assert {"group", "status", "lag", "lag_time"} <= set(table.shown)
        assert table.virtual_size.width <= 80
        cells = [str(table.get_row_at(row)[0]) for row in range(3)]
        (shown,) = [cell for cell in cells if not cell.startswith("group-")]
        assert shown == name or (shown[:9] == name[:9] and shown.endswith(name[-4:]))


@pytest.mark.parametrize("path", ["partitions", "groups"])
async def test_a_digit_means_the_same_column_at_every_width(services: Services, path: str) -> None:
    found: list[list[str]] = []
    for width in (80, 240):
        app = PartiscopeApp(services, path=path)
        async with app.run_test(size=(width, 24)) as pilot:
            await pilot.pause()
            sorts = []
            for digit in "1234567890":
                await pilot.press(digit)
                place = app.screen.path  # type: ignore[attr-defined]
                name = place.query["sort"].lstrip("-")
                assert name in app.screen.query_one(RowTable).shown, "it is shown"
                assert "by" in str(app.screen.query_one("#table-title").render())
                sorts.append(place.query["sort"])
            found.append(sorts)
    assert found[0] == found[1]
    assert len(set(found[0])) >= 9


async def test_sorting_by_a_hidden_column_shows_it(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions?cols=topic,status")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#table")), "the table")
        table = app.screen.query_one(RowTable)
        assert table.shown == ("topic", "status")
        await pilot.press("s")
        await settle(pilot, lambda: bool(app.screen.query("#sort")), "the columns")
        chooser = app.screen.query_one("#sort", OptionList)
        chooser.highlighted = chooser.get_option_index("max_lag")
        await pilot.press("enter")
        await settle(pilot, lambda: "max_lag" in table.shown, "the column")
        assert "by max lag ↓" in str(app.screen.query_one("#table-title").render())


async def test_colour_never_stands_alone(services: Services, tmp_path: Path) -> None:
    now = synthetic_rows(SyntheticSizes(topics=3, partitions=2, groups=3), at_ms=NOW_MS)
    for row in now["commits"]:
        row["lag_records_per_s"] = 500.0
    StoreBuilder(tmp_path).write(now)
    app = PartiscopeApp(services, path="groups")
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#table")), "the table")
        table = app.screen.query_one(RowTable)
        services.feed.refresh()
        await settle(pilot, lambda: table.row_count == 3, "its rows")
        trend = str(table.get_row_at(0)[table.shown.index("velocity")])
        assert trend.startswith("▲ +")
        assert table.virtual_size.width <= 120
