"""A key acts on what was shown as selected: nothing but the operator moves the selection."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from tests.support.settle import settle
from tests.support.store_builder import Row, StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.screens.base import ViewScreen
from tui.terminal_session import Services
from tui.widgets.findings import FindingsList
from tui.widgets.heat_table import HeatTable
from tui.widgets.partition_map import CellsMap
from tui.widgets.row_table import RowTable

SIZES = SyntheticSizes(topics=6, partitions=8, groups=5)
Now = dict[str, list[Row]]


def _screen(app: PartiscopeApp) -> ViewScreen:
    assert isinstance(app.screen, ViewScreen)
    return app.screen


async def _opened(app: PartiscopeApp, pilot: Pilot[None]) -> RowTable:
    await settle(pilot, lambda: bool(app.screen.query(RowTable)), "the view")
    table = app.screen.query(RowTable).first()
    await settle(pilot, lambda: table.row_count > 0, "its rows")
    return table


async def _next(
    pilot: Pilot[None], services: Services, store: Path, change: Callable[[Now], None]
) -> None:
    """A newer version of the store, as it is shown."""
    now = synthetic_rows(SIZES, at_ms=NOW_MS)
    change(now)
    before = services.feed.current.version
    builder = StoreBuilder(store)
    builder._batch_id = before + 100
    builder.write(now)
    services.feed.refresh()
    app = pilot.app
    assert isinstance(app, PartiscopeApp)
    await settle(pilot, lambda: app._shown is services.feed.current, "the newer figures")
    await pilot.pause()


def _without(kind: str, **wanted: object) -> Callable[[Now], None]:
    def change(now: Now) -> None:
        now[kind] = [
            row for row in now[kind] if any(row[name] != value for name, value in wanted.items())
        ]

    return change


def _nothing(_: Now) -> None:
    """The same figures."""


@pytest.mark.parametrize("path", ["topics", "partitions", "groups", "partitions?sort=-lag"])
async def test_other_columns_leave_the_selected_row(services: Services, path: str) -> None:
    app = PartiscopeApp(services, path=path)
    async with app.run_test(size=(80, 24)) as pilot:
        table = await _opened(app, pilot)
        await pilot.press("down", "down", "down")
        before, shown = table.pointed, table.shown
        assert before is not None
        for size in ((160, 48), (100, 12), (80, 24), (240, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.05)
            after = table.pointed
            assert after is not None
            assert after.key == before.key
            assert _screen(app).topic_here == before.path.split("/")[1] or path == "groups"
        assert table.shown != shown


async def test_a_resize_keeps_the_selected_row_in_sight(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test(size=(160, 48)) as pilot:
        table = await _opened(app, pilot)
        await pilot.press(*["down"] * 30)
        await pilot.resize_terminal(80, 12)
        await settle(
            pilot,
            lambda: table.scroll_y <= 30 < table.scroll_y + table.size.height,
            "the selected row",
        )
        assert table.cursor_row == 30


async def test_wider_figures_leave_the_selected_row(services: Services, tmp_path: Path) -> None:
    def grow(now: Now) -> None:
        for row in now["partitions"]:
            row["high_watermark"] = 10**14

    app = PartiscopeApp(services, path="partitions")
    async with app.run_test(size=(150, 24)) as pilot:
        table = await _opened(app, pilot)
        await pilot.press("down", "down")
        before, shown = table.pointed, table.shown
        assert before is not None
        await _next(pilot, services, tmp_path, grow)
        assert table.shown != shown
        assert table.pointed is not None
        assert table.pointed.key == before.key


async def test_a_row_that_is_gone_leaves_none_selected(services: Services, tmp_path: Path) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        table = await _opened(app, pilot)
        await pilot.press("down", "down")
        assert _screen(app).topic_here == "topic-2"
        await _next(pilot, services, tmp_path, _without("partitions", topic="topic-2"))
        assert table.row_count == 5
        assert table.pointed is None
        assert _screen(app).topic_here == ""
        await pilot.press("enter")
        assert str(_screen(app).path) == "topics"
        await _next(pilot, services, tmp_path, _nothing)  # it is there again
        assert _screen(app).topic_here == "topic-2"
        await _next(pilot, services, tmp_path, _without("partitions", topic="topic-2"))
        await pilot.press("down")
        assert _screen(app).topic_here == "topic-3"
        await pilot.press("down")
        assert _screen(app).topic_here == "topic-4"


async def test_rows_above_that_come_and_go_leave_the_selected_one(
    services: Services, tmp_path: Path
) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        table = await _opened(app, pilot)
        await pilot.press("down", "down", "down")
        await _next(pilot, services, tmp_path, _without("partitions", topic="topic-0"))
        assert (table.cursor_row, _screen(app).topic_here) == (2, "topic-3")
        await _next(pilot, services, tmp_path, _nothing)
        assert (table.cursor_row, _screen(app).topic_here) == (3, "topic-3")


async def test_a_selected_row_that_another_order_carries_away_stays_in_sight(
    services: Services, tmp_path: Path
) -> None:
    def turn(now: Now) -> None:
        for row in now["partitions"]:
            row["in_records_per_s"] = float(int(row["topic"][-1]) * 10 + row["partition"])

    def turn_round(now: Now) -> None:
        turn(now)
        for row in now["partitions"]:
            row["in_records_per_s"] = 100.0 - row["in_records_per_s"]

    app = PartiscopeApp(services, path="partitions?sort=-in_records")
    async with app.run_test(size=(80, 24)) as pilot:
        table = await _opened(app, pilot)
        await _next(pilot, services, tmp_path, turn)
        await pilot.press("home", "down")
        before = table.pointed
        assert before is not None
        await _next(pilot, services, tmp_path, turn_round)
        assert table.pointed is not None
        assert table.pointed.key == before.key
        await settle(
            pilot,
            lambda: table.scroll_y <= table.cursor_row < table.scroll_y + table.size.height - 1,
            "the selected row",
        )


async def test_a_filter_that_nothing_passes_leaves_an_empty_table(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        table = await _opened(app, pilot)
        await pilot.press("slash", *"zzz")
        await settle(pilot, lambda: table.row_count == 0, "no row")
        assert _screen(app).topic_here == ""


async def test_the_map_keeps_its_topic_and_broker(services: Services, tmp_path: Path) -> None:
    app = PartiscopeApp(services, path="map")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(HeatTable)), "the map")
        grid = app.screen.query_one(HeatTable)
        await pilot.press("down", "down", "right")
        here = grid.topic, grid.broker
        assert here == ("topic-2", "102")
        first = grid._topics[0]
        await _next(pilot, services, tmp_path, _without("partitions", topic=first))
        assert (grid.topic, grid.broker) == here
        await _next(pilot, services, tmp_path, _without("partitions", topic="topic-2"))
        assert (grid.topic, grid.broker) == ("", "")
        await pilot.press("enter")
        assert str(_screen(app).path) == "map"
        await pilot.press("down")
        assert grid.topic not in ("", "topic-2")


async def test_a_cell_keeps_its_partition(services: Services, tmp_path: Path) -> None:
    app = PartiscopeApp(services, path="map?by=partitions")
    async with app.run_test(size=(40, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(CellsMap)), "the map")
        cells = app.screen.query_one(CellsMap)
        await pilot.press("down", "right")

        def here() -> tuple[str, int] | None:
            record = cells.pointed
            return None if record is None else (record["topic"], record["partition"])

        before = here()
        assert before == ("topic-4", 6)
        await pilot.resize_terminal(60, 24)
        await settle(pilot, lambda: cells._at == (0, 38), "its new place")
        assert here() == before
        await _next(pilot, services, tmp_path, _without("partitions", topic="topic-0"))
        assert here() == before
        await _next(pilot, services, tmp_path, _without("partitions", topic="topic-4"))
        assert here() is None
        assert _screen(app).topic_here == ""
        await pilot.press("right")
        assert here() is not None


async def test_a_finding_stays_under_the_cursor(services: Services, tmp_path: Path) -> None:
    app = PartiscopeApp(services, path="findings")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(FindingsList)), "the findings")
        strip = app.screen.query_one(FindingsList)
        await settle(pilot, lambda: strip.option_count == 1, "one")
        strip.highlighted = 0
        before = strip.pointed
        assert before is not None

        def lose_leaders(now: Now) -> None:  # a worse finding comes on top
            for row in now["partitions"][:3]:
                row["leader"], row["isr"] = -1, []

        await _next(pilot, services, tmp_path, lose_leaders)
        after = strip.pointed
        assert after is not None
        assert (after.key, after.path) == (before.key, before.path)
        assert strip.highlighted != 0


async def test_the_loss_that_is_asked_for_stays(services: Services, tmp_path: Path) -> None:
    app = PartiscopeApp(services, path="what-if?broker=102")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#losses")), "the question")
        chooser = app.screen.query_one("#losses", OptionList)
        await settle(pilot, lambda: chooser.highlighted == 1, "broker 102")
        await _next(pilot, services, tmp_path, _without("brokers", broker=101))
        assert chooser.highlighted == 0
        assert str(_screen(app).path) == "what-if?broker=102"
        await _next(pilot, services, tmp_path, _without("brokers", broker=102))
        assert chooser.highlighted is None
        assert "broker 102 is not there" in str(app.screen.query_one("#answer").render())
