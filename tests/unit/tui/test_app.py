"""Keys and places: what an operator types, and where it leads."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tests.support.settle import settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.messages import SnapshotArrived
from tui.screens.base import ViewScreen
from tui.screens.details.overview import OverviewScreen
from tui.terminal_session import Services
from tui.widgets.findings import FindingsList
from tui.widgets.key_line import GotoLine, KeyLine
from tui.widgets.row_table import RowTable
from tui.widgets.top_bar import TopBar


def _place(app: PartiscopeApp) -> str:
    assert isinstance(app.screen, ViewScreen)
    return str(app.screen.path)


def _is_at(app: PartiscopeApp, place: str) -> bool:
    return _place(app) == place


def _bar(app: PartiscopeApp) -> str:
    return "".join(str(bar.render()) for bar in app.screen.query(TopBar))


def _first_column(table: RowTable) -> list[str]:
    return [str(table.get_row_at(row)[0]) for row in range(table.row_count)]


async def test_the_overview_shows_findings_brokers_and_groups(services: Services) -> None:
    app = PartiscopeApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        brokers = app.screen.query_one("#brokers", RowTable)
        assert [text.strip() for text in _first_column(brokers)] == ["★ 101", "102", "103"]
        groups = app.screen.query_one("#groups", RowTable)
        assert groups.row_count == 5
        assert app.screen.query_one(FindingsList).option_count == len(
            services.feed.current.finding_rows
        )


async def test_a_tall_terminal_shows_more_findings_and_a_resize_is_followed(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = synthetic_rows(SyntheticSizes(topics=12, partitions=1, groups=9), at_ms=NOW_MS)
    troubles: tuple[dict[str, int], ...] = (
        {"is_fenced": True}, {"clock_skew_ms": 45_000}, {"disk_usable_bytes": 1},
    )  # fmt: skip
    for broker, trouble in zip(rows["brokers"], troubles, strict=True):
        broker.update(trouble)
    StoreBuilder(tmp_path).write(rows)
    app = PartiscopeApp(services)
    async with app.run_test(size=(120, 60)) as pilot:
        findings = app.screen.query_one(FindingsList)
        await settle(pilot, lambda: findings.option_count >= 3, "the findings")
        shown, racks = findings.option_count, app.screen.query_one("#racks")
        assert racks.display
        monkeypatch.setattr(findings, "_shown_max", 1)
        await pilot.resize_terminal(120, 24)
        await settle(pilot, lambda: findings.option_count == 1, "the worst")
        assert not racks.display
        await pilot.resize_terminal(120, 60)
        await settle(pilot, lambda: findings.option_count == shown, "all of them")
        assert racks.display


@pytest.mark.parametrize("view", ["overview", "what-if?broker=102"])
async def test_no_heading_is_empty_after_a_resize(services: Services, view: str) -> None:
    app = PartiscopeApp(services, path=view)
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot, lambda: bool(_headings(app)), "the figures")
        for size in ((120, 60), (60, 20), (140, 45)):
            await pilot.resize_terminal(*size)
            await settle(pilot, lambda: all(_headings(app)), "each heading has its words")


def _headings(app: PartiscopeApp) -> list[str]:
    """Texts of those on screen."""
    titles = app.screen.query("#brokers-title, #groups-title, #racks-title, .title").results(Static)
    return [str(it.render()) for it in titles if it.display and it.region.height]


async def test_the_first_view_shows_the_first_figures_once(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []
    monkeypatch.setattr(OverviewScreen, "show", lambda _, snapshot: shown.append(snapshot.version))
    app = PartiscopeApp(services)
    async with app.run_test() as pilot:
        await settle(pilot, lambda: bool(shown), "the overview")
        app.post_message(SnapshotArrived(services.feed.current, services.feed))
        await pilot.pause()
        assert shown == [services.feed.current.version]


async def test_figures_that_cannot_be_read_are_said_on_every_view(
    services: Services, tmp_path: Path
) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, partial(_is_at, app, "topics"), "the topics")
        (tmp_path / "manifest.json").write_bytes(b"{")
        bar = app.screen.query_one(TopBar)
        await settle(pilot, lambda: "figures cannot be read" in str(bar.render()), "the word")
        assert len(app.session.snapshot.cluster.topics) == 6


async def test_g_and_a_letter_go_to_a_view_and_escape_comes_back(services: Services) -> None:
    app = PartiscopeApp(services)
    async with app.run_test() as pilot:
        for letter, place in ("t", "topics"), ("b", "brokers"), ("g", "groups"), ("f", "findings"):
            await pilot.press("g", letter)
            await settle(pilot, partial(_is_at, app, place), place)
            await pilot.press("escape")
            await settle(pilot, partial(_is_at, app, "overview"), "the overview")
        await pilot.press("escape")  # the ground floor: nothing below it
        await pilot.pause()
        assert _place(app) == "overview"


async def test_after_g_a_key_that_is_no_place_does_what_it_does_elsewhere(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test() as pilot:
        await settle(pilot, lambda: bool(app.screen.query(GotoLine)), "the partitions")
        line = app.screen.query_one(GotoLine)
        await pilot.press("g")
        assert line.display
        await pilot.press("slash")
        assert not line.display
        await pilot.press("g", "t")
        assert app.screen.query_one("#filter", Input).value == "gt"
        assert _place(app) == "partitions?q=gt"


async def test_q_after_g_does_not_quit_and_q_alone_does(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test() as pilot:
        await settle(pilot, lambda: bool(app.screen.query(GotoLine)), "the topics")
        await pilot.press("g", "q")
        await pilot.pause()
        assert app.is_running
        assert not app.screen.query_one(GotoLine).display
        await pilot.press("q")
        await settle(pilot, lambda: not app.is_running, "its end")


async def test_a_new_topic_begins_without_values_as_on_the_page(services: Services) -> None:
    app = PartiscopeApp(services, path="topics/topic-1")
    async with app.run_test() as pilot:
        await settle(pilot, lambda: bool(app.screen.query(RowTable)), "the topic")
        await pilot.press("n")
        await settle(pilot, lambda: bool(app.screen.query("#field-topic")), "the form")
        for name in ("topic", "partitions", "replication_factor"):
            assert app.screen.query_one(f"#field-{name}", Input).value == ""


async def test_a_click_on_a_key_of_the_last_line_presses_it(services: Services) -> None:
    app = PartiscopeApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        keys = app.screen.query_one(KeyLine)
        await settle(pilot, lambda: "g go" in str(keys.render()), "the keys")
        at = str(keys.render()).index("g go")
        await pilot.click(keys, offset=(at, 0))
        await settle(pilot, lambda: app.screen.query_one(GotoLine).display, "the places")


async def test_enter_goes_one_level_deeper_and_keeps_the_place(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert _place(app) == "topics/topic-2"
        await pilot.press("down", "enter")
        await pilot.pause()
        assert _place(app) == "topics/topic-2/partitions/1"
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert _place(app) == "topics"
        assert app.screen.query_one(RowTable).cursor_row == 2


async def test_a_filter_narrows_the_table_and_is_part_of_the_link(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("slash")
        await pilot.press(*"topic:topic-3")
        await pilot.press("enter")
        await pilot.pause()
        table = app.screen.query_one(RowTable)
        assert set(_first_column(table)) == {"topic-3"}
        assert _place(app) == "partitions?q=topic:topic-3"
        assert app.screen.focused is table


async def test_internal_topics_are_listed_when_asked_for(
    services: Services, tmp_path: Path
) -> None:
    rows = synthetic_rows(SyntheticSizes(topics=6, partitions=8, groups=5), at_ms=NOW_MS)
    rows["partitions"][0]["topic"] = "__consumer_offsets"
    StoreBuilder(tmp_path).write(rows)
    services.feed.refresh()
    app = PartiscopeApp(services, path="topics")
    async with app.run_test() as pilot:
        await pilot.pause()
        table = app.screen.query_one(RowTable)
        assert "__consumer_offsets" not in _first_column(table)
        await pilot.press("H")
        await pilot.pause()
        assert "__consumer_offsets" in _first_column(table)
        assert _place(app) == "topics?internal=yes"
        await pilot.press("H")
        await pilot.pause()
        assert _place(app) == "topics"
        assert set(_first_column(table)) == {f"topic-{n}" for n in range(6)}


async def test_a_wrong_filter_is_explained_not_obeyed(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("slash")
        app.screen.query_one("#filter", Input).value = "lag>many"
        await pilot.pause()
        title = str(app.screen.query_one("#table-title").render())
        assert "▲" in title


async def test_a_refresh_keeps_the_cursor_on_its_row(services: Services, tmp_path: Path) -> None:
    app = PartiscopeApp(services, path="partitions?sort=-lag")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press(*["down"] * 5)
        table = app.screen.query_one(RowTable)
        before = table.pointed
        assert before is not None
        sizes = SyntheticSizes(topics=7, partitions=8, groups=5)
        builder = StoreBuilder(tmp_path)
        builder.write_synthetic(sizes, history_s=10, at_ms=NOW_MS)
        services.feed.refresh()  # unless its own thread was faster
        await settle(pilot, lambda: table.row_count == 56, "the new topic's rows")
        after = table.pointed
        assert after is not None
        assert after.key == before.key


async def test_space_holds_the_figures_still(services: Services, tmp_path: Path) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("space")
        StoreBuilder(tmp_path).write_synthetic(
            SyntheticSizes(topics=7, partitions=8, groups=5), history_s=10, at_ms=NOW_MS
        )
        services.feed.refresh()  # unless its own thread was faster
        await pilot.pause(0.2)
        table = app.screen.query_one(RowTable)
        assert table.row_count == 48
        assert "PAUSED" in str(app.screen.query_one(TopBar).render())
        await pilot.press("space")
        await settle(pilot, lambda: table.row_count == 56, "the figures of now")


async def test_a_wrong_path_says_so_and_leaves_the_overview(services: Services) -> None:
    app = PartiscopeApp(services, path="nowhere/at/all")
    async with app.run_test() as pilot:
        await pilot.pause()
        assert _place(app) == "overview"
        assert [note.severity for note in app._notifications] == ["warning"]


async def test_a_missing_partition_is_said_not_invented(services: Services) -> None:
    app = PartiscopeApp(services, path="topics/topic-0/partitions/99")
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "no such partition" in str(app.screen.query_one("#tiles").render())


async def test_sorting_by_the_same_column_again_turns_the_order(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        await _sort_by_first_column(pilot)
        assert _first_column(app.screen.query_one(RowTable))[0] == "topic-5"
        await _sort_by_first_column(pilot)
        assert _first_column(app.screen.query_one(RowTable))[0] == "topic-0"


async def _sort_by_first_column(pilot: Pilot[None]) -> None:
    await pilot.press("s")
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause()


async def test_an_unreachable_cluster_is_a_message_in_the_form(read_only: Services) -> None:
    app = PartiscopeApp(read_only, path="produce/topic-0")
    async with app.run_test() as pilot:
        limits = app.screen.query_one("#limits")
        await settle(pilot, lambda: "✖" in str(limits.render()), "that nobody answers")


@pytest.mark.parametrize(("key", "place"), [("R", "plan?topics=topic-1"), ("P", "produce/topic-1")])
async def test_operations_begin_where_the_cursor_stands(
    read_only: Services, key: str, place: str
) -> None:
    app = PartiscopeApp(read_only, path="topics")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("down", key)
        await pilot.pause()
        assert _place(app) == place


async def test_the_palette_pauses_and_goes_to_places(services: Services) -> None:
    app = PartiscopeApp(services)
    async with app.run_test() as pilot:
        await pilot.pause()
        commands = {item.title: item.callback for item in app.get_system_commands(app.screen)}
        commands["Pause, resume"]()
        await settle(pilot, lambda: app.session.is_paused, "the pause")
        commands["Go to What if"]()
        await settle(pilot, lambda: _place(app).startswith("what-if"), "the question")


async def test_what_if_begins_with_the_broker_under_the_cursor(services: Services) -> None:
    app = PartiscopeApp(services)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("down", "w")
        answer = app.screen.query_one("#answer")
        await settle(pilot, lambda: "offline" in str(answer.render()), "the answer")
        assert _place(app) == "what-if?broker=102"


async def test_a_past_time_says_so_until_told_otherwise(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("@")
        await pilot.pause()
        await pilot.press(*"2m", "enter")
        await settle(pilot, lambda: "you are looking at" in _bar(app), "the time")
        assert app.session.at_ms == NOW_MS - 2 * 60_000
        assert app.session.snapshot.built_ms == app.session.at_ms, "tables and findings are of then"
        assert isinstance(app.screen, ViewScreen)
        assert app.session.link_of(app.screen.path) == "partitions?at=2026-11-18T11:04:40Z"
        await pilot.press("space")
        await settle(pilot, lambda: "looking" not in _bar(app), "now again")
        assert app.session.snapshot is services.feed.current


async def test_a_link_to_the_past_opens_it_and_what_is_not_kept_is_said(services: Services) -> None:
    app = PartiscopeApp(services, path="topics?at=1m")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: app.session.at_ms == NOW_MS - 60_000, "the time of the link")
        assert _place(app) == "topics"
        await pilot.press("@")
        await pilot.pause()
        await pilot.press(*"400d", "enter")
        await settle(pilot, lambda: len(app._notifications) > 0, "that nothing is kept")
        assert app.session.at_ms == NOW_MS - 60_000, "shown is what was before"
        assert "you are looking at" in _bar(app)


async def test_charts_show_the_range_of_the_path_until_another_is_chosen(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="topics/topic-1?range=6h")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#history-line")), "the topic")
        line = app.screen.query_one("#history-line")
        await settle(pilot, lambda: "last 6 hours" in str(line.render()), "the line of throughput")
        assert isinstance(app.screen, ViewScreen)
        assert app.session.link_of(app.screen.path) == "topics/topic-1?range=6h"
        await pilot.press("@", *["down"] * 6, "enter")  # behind six ages
        await settle(pilot, lambda: "last 10 minutes" in str(line.render()), "the first range")
        assert app.session.at_ms is None
        assert app.session.link_of(app.screen.path) == "topics/topic-1"


async def test_what_a_key_acts_on_is_the_partition_under_the_cursor_or_the_topic(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="partitions?q=topic:topic-3")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(RowTable)), "the partitions")
        await pilot.press("down", "P")
        await settle(pilot, lambda: _place(app) == "produce/topic-3?partition=1", "its partition")
        field = app.screen.query_one("#field-partition", Input)
        assert field.value == "1"
        app.navigator.open("topics/topic-3")
        await settle(pilot, lambda: bool(app.screen.query(RowTable)), "the topic")
        await pilot.press("down", "P")
        await settle(pilot, lambda: _place(app) == "produce/topic-3", "the topic")


async def test_a_plan_that_was_made_elsewhere_has_no_map_here(services: Services) -> None:
    app = PartiscopeApp(services, path="map?plan=0a1b2c3d&topics=orders")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#plan-map-title")), "the map of a plan")
        title = app.screen.query_one("#plan-map-title")
        await settle(pilot, lambda: "is not kept here" in str(title.render()), "why")
        await pilot.press("n", "m")
        assert _place(app).startswith("map?plan=0a1b2c3d")
        await pilot.press("e")
        await settle(pilot, lambda: bool(app.screen.query("#field-topics")), "its form")
        assert app.screen.query_one("#field-topics", Input).value == "orders"


async def test_an_export_holds_what_the_filter_leaves(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = PartiscopeApp(services, path="partitions?q=topic:topic-3")
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("e", "J")
        await pilot.pause()
    records = json.loads((tmp_path / "partiscope-partitions.json").read_text())
    assert [record["topic"] for record in records] == ["topic-3"] * 8
    lines = (tmp_path / "partiscope-partitions.csv").read_text().splitlines()
    assert len(lines) == 1 + 8
    assert all(line.startswith("topic-3,") for line in lines[1:])


async def test_columns_are_chosen_and_part_of_the_link(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("l")
        await pilot.pause()
        await pilot.press("down", "space", "enter")  # without the status
        await settle(pilot, lambda: "cols=" in _place(app), "the choice")
        assert "status" not in app.screen.query_one(RowTable).shown
        assert _place(app).startswith("topics?cols=topic,partitions,")


async def test_a_digit_sorts_by_that_column_from_the_top(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("down", "5")
        await settle(pilot, lambda: _place(app) == "topics?sort=-size_bytes", "the order")
        table = app.screen.query_one(RowTable)
        assert table.cursor_row == 0
        assert _first_column(table)[0] == "topic-5"


async def test_a_time_that_is_left_is_sorted_from_the_soonest(services: Services) -> None:
    app = PartiscopeApp(services, path="groups")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for wanted in ("groups?sort=loses", "groups?sort=-loses"):
            await pilot.press("7")
            await settle(pilot, lambda at=wanted: _place(app) == at, wanted)  # type: ignore[misc]


async def test_every_partition_is_a_cell_that_tells_and_opens_it(services: Services) -> None:
    app = PartiscopeApp(services, path="map")
    async with app.run_test(size=(40, 24)) as pilot:
        await pilot.pause()
        await pilot.press("b")
        await settle(pilot, lambda: bool(app.screen.query("#cell-under")), "the other map")
        under = app.screen.query_one("#cell-under")
        await settle(pilot, lambda: "topic-0-0" in str(under.render()), "its first cell")
        await pilot.press("right", "down", "end", "4")
        # 48 partitions, 37 cells in a row: the last is the eleventh of the second row.
        await settle(pilot, lambda: "topic-5-7" in str(under.render()), "the last partition")
        assert "lag, leader" in str(under.render())
        await pilot.press("enter")
        await settle(pilot, lambda: _place(app) == "topics/topic-5/partitions/7", "the partition")
        await pilot.press("escape", "b")
        await settle(pilot, lambda: _place(app) == "map", "topic by broker")


async def test_the_map_opens_the_partitions_behind_its_cell(services: Services) -> None:
    app = PartiscopeApp(services, path="map")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("down", "right", "enter")
        await settle(pilot, lambda: _place(app).startswith("partitions"), "the partitions")
        assert _place(app) == "partitions?q=topic=topic-1%20broker:102"


async def test_old_figures_are_marked_and_stay(services: Services) -> None:
    later = replace(services, now_ms=lambda: NOW_MS + 60_000)
    app = PartiscopeApp(later, path="partitions")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        bar = app.screen.query_one(TopBar).render()
        assert isinstance(bar, Content)
        age = str(bar).index("1 m ago")
        styles = [str(span.style) for span in bar.spans if span.start <= age < span.end]
        assert any("red" in style for style in styles)
        assert app.screen.query_one(RowTable).row_count == 48


async def test_a_mouse_click_opens_the_row(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test() as pilot:
        await pilot.pause()
        table = app.screen.query_one(RowTable)
        await pilot.click(table, offset=(3, 3))
        await pilot.click(table, offset=(3, 3))
        await settle(pilot, lambda: _place(app) == "topics/topic-2", "the topic")


async def test_essential_columns_are_whole_on_a_narrow_screen(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        table = app.screen.query_one(RowTable)
        titles = [str(column.label) for column in table.ordered_columns]
        assert {"topic", "partition", "status", "max lag"} <= set(titles)
        assert table.virtual_size.width <= 80
