"""Keys that come faster than the screen follows, and Escape among them."""

from typing import Any

import pytest
from textual.events import Key
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.screens.base import ViewScreen
from tui.terminal.driver import EscapeParser
from tui.terminal_session import Services
from tui.widgets.row_table import RowTable


def _arrive(app: PartiscopeApp, *keys: str) -> None:
    """All at once, as over a slow line."""
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))


def _place(app: PartiscopeApp) -> str:
    return str(app.screen.path) if isinstance(app.screen, ViewScreen) else repr(app.screen)


@pytest.mark.parametrize("path", ["topics", "partitions", "groups", "brokers", "topics/topic-1"])
async def test_escape_keeps_a_filter_and_the_next_keys_are_the_tables(
    services: Services, path: str
) -> None:
    app = PartiscopeApp(services, path=path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#filter")), "the view")
        line = app.screen.query_one("#filter", Input)
        _arrive(app, "slash", *"topic", "escape", "1")
        await settle(pilot, lambda: "sort=" in _place(app), "sorted: 1 is a key of the table")
        assert (line.value, line.display) == ("topic", True)
        assert isinstance(app.screen.focused, RowTable)
        _arrive(app, "escape")
        await settle(pilot, lambda: not line.display, "none")
        assert (line.value, _place(app).partition("?")[0]) == ("", path)
        _arrive(app, "slash", "escape")
        await settle(pilot, lambda: not line.display, "an empty one is closed")
        assert isinstance(app.screen.focused, RowTable)
        _arrive(app, "escape")
        await settle(pilot, lambda: _place(app) == "overview", "one level back")


async def test_escape_takes_a_filter_back_to_that_of_the_link(services: Services) -> None:
    app = PartiscopeApp(services, path="partitions?q=topic-1")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#filter")), "the view")
        line = app.screen.query_one("#filter", Input)
        _arrive(app, "slash", *"zzz", "escape")
        await settle(pilot, lambda: line.value.endswith("zzz"), "it is typed")
        await settle(pilot, lambda: app.screen.focused is not line, "the table")
        _arrive(app, "escape")
        await settle(pilot, lambda: line.value == "topic-1", "as it was opened")
        assert _place(app) == "partitions?q=topic-1"
        _arrive(app, "escape")
        await settle(pilot, lambda: _place(app) == "overview", "one level back")


async def test_escape_in_a_filter_of_configs_is_that_of_a_table(services: Services) -> None:
    app = PartiscopeApp(services, path="topics/topic-1/configs")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#configs-q")), "the view")
        line = app.screen.query_one("#configs-q", Input)
        await pilot.press("slash", *"ret", "escape")
        await settle(pilot, lambda: isinstance(app.screen.focused, RowTable), "the table")
        assert line.value == "ret"
        await pilot.press("escape")
        await settle(pilot, lambda: line.value == "", "taken back")
        assert _place(app).startswith("topics/topic-1/configs")


async def test_escape_in_a_field_of_messages_gives_the_keys_to_the_table(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="browse/topic-1?q=needle&since=10m")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#browse-contains")), "the view")
        field = app.screen.query_one("#browse-contains", Input)
        await pilot.press("slash", "end", "s", "escape")
        await settle(pilot, lambda: isinstance(app.screen.focused, RowTable), "the table")
        assert field.value == "needles"
        assert "needles" not in _place(app), "no search has begun"


async def test_keys_behind_one_that_opens_a_view_are_for_that_view(services: Services) -> None:
    app = PartiscopeApp(services, path="overview")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(RowTable)), "the overview")
        _arrive(app, "g", "t", "down", "down", "enter", "down", "enter")
        place = "topics/topic-2/partitions/1"
        await settle(pilot, lambda: _place(app) == place, place)


@pytest.mark.parametrize("key", ["R", "w", "v", "D", "i", "y"])
async def test_a_key_right_after_going_to_a_view_finds_it_ready(
    services: Services, key: str
) -> None:
    app = PartiscopeApp(services, path="brokers")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(RowTable)), "the brokers")
        for view in "ftpgmwrjh":
            _arrive(app, "g", view, key, "escape", "escape")
        await settle(pilot, lambda: not app._keys and app._on_its_way is None, "all keys")


@pytest.mark.parametrize(
    "path", ["browse/topic-1?q=needle", "topics/topic-1/configs", "groups?filter=group"]
)
async def test_no_field_has_the_keys_while_a_view_opens(
    services: Services, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    focused: list[Widget] = []
    set_focus = Screen.set_focus

    def keep(screen: Screen[object], widget: Widget | None, *more: Any, **options: Any) -> None:
        focused.extend([] if widget is None else [widget])
        set_focus(screen, widget, *more, **options)

    monkeypatch.setattr(Screen, "set_focus", keep)
    app = PartiscopeApp(services, path=path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(Input)), "the view")
        await settle(pilot, lambda: isinstance(app.screen.focused, RowTable), "the table")
    assert [it for it in focused if isinstance(it, Input)] == []


async def test_enter_in_a_filter_gives_the_next_keys_to_the_table(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(RowTable)), "the topics")
        _arrive(app, "slash", *"topic", "enter", "down", "down", "enter")
        await settle(pilot, lambda: _place(app) == "topics/topic-2", "its third row")


def _read(*pieces: str) -> list[str]:
    parser = EscapeParser()
    return [
        message.key
        for piece in pieces
        for message in parser.feed(piece)
        if isinstance(message, Key)
    ]


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("\x1b/", ["escape", "slash"]),
        ("\x1b\r", ["escape", "enter"]),
        ("abc\x1bxy", ["a", "b", "c", "escape", "x", "y"]),
        ("\x1bD", ["escape", "D"]),
        ("\x1b5", ["escape", "5"]),
        ("\x1b\x1bq", ["escape", "escape", "q"]),
        ("\x1b[A", ["up"]),
        ("\x1bOP", ["f1"]),
        ("\x1b[1;5C", ["ctrl+right"]),
        ("\x1b[100;3u", ["alt+d"]),
    ],
)
def test_escape_and_a_key_in_one_piece_are_two_keys(typed: str, keys: list[str]) -> None:
    assert _read(typed) == keys
    assert _read(*typed) == keys
