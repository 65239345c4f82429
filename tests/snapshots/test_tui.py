"""Every screen of the terminal in three sizes, as pictures.

`pytest tests/snapshots --snapshot-update` takes them anew; a failing run writes
`snapshot_report.html` with both pictures side by side.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from control.kafka.records.reader import Browsed
from control.messages.message_search import MessageSearch
from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from spark_metrics.window.aggregates import AggregatesReader
from tests.snapshots.canned import LINES, NOW_MS, CannedSession, records
from tests.support.settle import settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tui.app import PartiscopeApp
from tui.screens.messages.browse import BrowseScreen
from tui.terminal_session import Services
from tui.widgets.row_table import RowTable

SIZES: Final = (
    pytest.param((80, 24), id="80x24"),
    pytest.param((120, 40), id="120x40", marks=pytest.mark.thorough),
    pytest.param((160, 48), id="160x48", marks=pytest.mark.thorough),
)
"""A change needs the smallest, where there is least room."""
Ready = Callable[[PartiscopeApp], bool]
Keys = tuple[str, ...]


def _says(*words: str) -> Ready:
    def is_ready(app: PartiscopeApp) -> bool:
        shown = " ".join(str(item.render()) for item in app.screen.query("Static"))
        return all(word in shown for word in words)

    return is_ready


def _has_rows(app: PartiscopeApp) -> bool:
    """And its columns are as wide as its rows need, which Textual works out when it is idle."""
    table = app.screen.query_one("#table", RowTable)
    return table.row_count > 0 and not table._require_update_dimensions


def _is_there(app: PartiscopeApp) -> bool:
    return bool(app.screen.children)


SCREENS: Final[dict[str, tuple[str, Keys, Ready]]] = {
    "overview": ("overview", (), _says("THROUGHPUT", "last 10 minutes", "LAG")),
    "findings": ("findings", (), _is_there),
    "brokers": ("brokers", (), _says("AGAINST THE MEAN")),
    "broker": ("brokers/102", (), _says("last 10 minutes")),
    "topics": ("topics", (), _has_rows),
    "topic": ("topics/topic-1", (), _says("last 10 minutes")),
    "filtered": ("partitions?q=topic:topic-3&sort=-lag", (), _has_rows),
    "partition": ("topics/topic-1/partitions/3", (), _is_there),
    "segments": ("topics/topic-1/partitions/3/segments", (), _is_there),
    "groups": ("groups", (), _has_rows),
    "group": ("groups/group-1", (), _says("last 10 minutes")),
    "map": ("map", (), _says("MAP")),
    "cells": ("map?by=partitions&measure=lag", (), _says("MAP", "leader")),
    "what-if": ("what-if?rack=b", (), _says("new leaders")),
    "plan-form": ("plan", (), _says("scope and goal")),
    "plan-review": ("plan", ("ctrl+s",), _says("groups:")),
    "plan-map": ("plan", ("ctrl+s", "m"), _says("PLAN ON THE MAP")),
    "plan-by-hand": ("plan", ("ctrl+s", "h"), _says("✔", "proven minimum")),
    "moves": ("moves", (), _has_rows),
    "move": ("moves/mv-3f9a21c4", (), _says("data to copy", "broker 104 is down")),
    "journal": ("journal", (), _has_rows),
    "produce": ("produce/topic-1", (), _says("no key")),
    "explain": ("topics/topic-1", ("i",), _says("Log segments")),
    "columns": ("partitions", ("l",), _is_there),
    "time": ("overview", ("@",), _says("as of")),
    "past": ("partitions?at=1m", (), _says("you are looking at")),
    "lag-map": ("map?measure=lag", (), _says("MAP")),
    "help": ("overview", ("question_mark",), _is_there),
    "goto": ("overview", ("g",), _says("go to")),
    "confirm": ("plan", ("ctrl+s", "c"), _says("y or Enter confirms")),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snapshots")
    sizes = SyntheticSizes(topics=6, partitions=8, groups=5, offline_every=37)
    StoreBuilder(path).write_synthetic(sizes, history_s=300, at_ms=NOW_MS)
    return path


@pytest.fixture
def app_of(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Opens the application at a path, in UTC, at a time that stands still."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    feeds = []

    def make(path: str) -> PartiscopeApp:
        reader = AggregatesReader(str(store))
        feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS, history=reader)
        feeds.append(feed)
        services = Services(
            feed=feed,
            history=reader,
            watched=WatchedCluster(bootstrap="kafka:9092"),
            bus="",
            journal=lambda: LINES,
            now_ms=lambda: NOW_MS,
        )
        app = PartiscopeApp(services, path=path)
        app.session._operations = CannedSession()  # type: ignore[assignment]
        return app

    yield make
    for feed in feeds:
        feed.stop()
    monkeypatch.undo()
    time.tzset()


def _until(ready: Ready, keys: Keys) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def run(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, PartiscopeApp)
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            if key == "ctrl+s":
                await settle(pilot, lambda: _says("groups:")(app), "the review")
        await settle(pilot, lambda: ready(app), f"{app.screen}")
        for field in (*app.screen.query(Input), *app.screen.query(TextArea)):
            field.cursor_blink = False
        await _rest(pilot)

    return run


async def _rest(pilot: Pilot[None]) -> None:
    """Until the screen is drawn alike twice: on a slow machine what is beneath a dialog may
    still be laid out."""
    drawn: deque[str] = deque(maxlen=2)

    def is_still() -> bool:
        drawn.append(pilot.app.export_screenshot())
        return len(drawn) == drawn.maxlen and len(set(drawn)) == 1

    await settle(pilot, is_still, "a rest")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SCREENS)
def test_screen(
    name: str, size: tuple[int, int], app_of: Callable[[str], Any], snap_compare: Any
) -> None:
    path, keys, ready = SCREENS[name]
    assert snap_compare(app_of(path), terminal_size=size, run_before=_until(ready, keys))


@pytest.mark.parametrize("size", SIZES)
def test_browse(
    size: tuple[int, int],
    app_of: Callable[[str], Any],
    snap_compare: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read(screen: BrowseScreen, wanted: MessageSearch, before: Browsed | None) -> None:
        assert before is None
        await screen._fill(records(), f"3 records of {wanted.topic} read: all of them")

    monkeypatch.setattr(BrowseScreen, "_read", read)
    assert snap_compare(
        app_of("browse/topic-1"), terminal_size=size, run_before=_until(_has_rows, ())
    )


@pytest.mark.parametrize("size", [(60, 20), (240, 60)], ids=["tiny", "wide"])
@pytest.mark.parametrize("name", ["overview", "filtered"])
def test_unusual_terminals(
    name: str, size: tuple[int, int], app_of: Callable[[str], Any], snap_compare: Any
) -> None:
    """A tiny one says what the screens need; a very wide one shows all columns."""
    path, keys, ready = SCREENS[name]
    if size == (60, 20):
        ready = _says("needs 80×24, has 60×20")
    assert snap_compare(app_of(path), terminal_size=size, run_before=_until(ready, keys))


def test_without_colours(
    app_of: Callable[[str], Any], snap_compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR: shapes alone tell what is wrong."""
    monkeypatch.setenv("NO_COLOR", "1")
    ready = SCREENS["overview"][2]
    assert snap_compare(app_of("overview"), terminal_size=(80, 24), run_before=_until(ready, ()))
