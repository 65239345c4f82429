"""Several clusters in the terminal: switched by a key or a link, flagged so that nobody errs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from textual.widgets import OptionList, Static

from control.model.ids import ClusterId
from control.model.watched_cluster import WatchedCluster
from control.views.paths import parse_path
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.snapshots.store import StoreReader
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.patience import WAIT_S
from tests.support.settle import settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.messages import SnapshotArrived
from tui.screens.base import ViewScreen
from tui.screens.dialogs.choose_cluster import ClustersScreen
from tui.terminal_session import OtherCluster, Services
from tui.widgets.row_table import RowTable


class HeldHistory:
    """A store's history that answers about a past moment when it is let go."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self.is_asked, self.may_answer = Event(), Event()

    def as_of(self, *, cluster: str, at_ms: int) -> Any:
        """What it was asked, later."""
        self.is_asked.set()
        assert self.may_answer.wait(WAIT_S)
        return self._reader.as_of(cluster=cluster, at_ms=at_ms)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


@pytest.fixture
def held(services: Services) -> Iterator[HeldHistory]:
    history = HeldHistory(services.history)
    yield history
    history.may_answer.set()


@pytest.fixture
def both(services: Services, other: Services, held: HeldHistory) -> Iterator[PartiscopeApp]:
    """On the topics of the first of two clusters, whose past is told when it is let go."""
    elsewhere = OtherCluster(watched=other.watched, open=lambda: other)
    test = replace(services.watched, name="test", cluster_id=ClusterId("c"), color="teal")
    first = replace(services, watched=test, history=cast(StoreReader, held))
    yield PartiscopeApp(first, path="topics", others=[elsewhere])
    other.feed.stop()


@pytest.fixture
def other(tmp_path: Path) -> Services:
    """Another cluster, with fewer topics."""
    folder = tmp_path / "other"
    sizes = SyntheticSizes(topics=2, partitions=2, groups=1)
    StoreBuilder(folder).write_synthetic(sizes, history_s=30, at_ms=NOW_MS)
    reader = AggregatesReader(str(folder))
    watched = WatchedCluster(name="prod", bootstrap="127.0.0.1:2", is_production=True)
    feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS)
    return Services(feed=feed, history=reader, watched=watched, bus="", now_ms=lambda: NOW_MS)


def _bar(app: PartiscopeApp) -> str:
    return str(app.screen.query_one("#top-bar", Static).render())


def _topics(app: PartiscopeApp) -> int:
    return len(app.session.snapshot.cluster.topics)


def _path(app: PartiscopeApp) -> str:
    return str(app.screen.path) if isinstance(app.screen, ViewScreen) else ""


async def test_c_goes_to_another_cluster_on_the_same_view(
    services: Services, other: Services
) -> None:
    elsewhere = OtherCluster(watched=other.watched, open=lambda: other)
    test = replace(services.watched, name="test", cluster_id=ClusterId("c"), color="teal")
    app = PartiscopeApp(replace(services, watched=test), path="topics", others=[elsewhere])
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: "test" in _bar(app), "the name is in the bar")
        assert _topics(app) == 6
        first = app.session.operations
        await pilot.press("c")
        await settle(pilot, lambda: isinstance(app.screen, ClustersScreen), "the clusters")
        shown = app.screen.query_one(OptionList)
        assert "PRODUCTION" in str(shown.get_option("prod").prompt)
        await pilot.press("enter")
        await settle(pilot, lambda: "PRODUCTION prod" in _bar(app), "the other cluster")
        assert _path(app) == "topics"
        assert _topics(app) == 2
        assert app.session.operations is not first
        assert app.session.operations.bootstrap == "127.0.0.1:2"
        assert app.session.link_of(parse_path("topics")) == "topics?cluster=prod"
        app.navigator.open("groups?cluster=test")
        await settle(pilot, lambda: _topics(app) == 6 and _path(app) == "groups", "back")
        app.navigator.open("groups?cluster=nowhere")
        assert app.session.services.watched.name == "test"
    other.feed.stop()


async def test_all_clusters_stand_side_by_side_and_enter_goes_to_one(
    services: Services, other: Services
) -> None:
    elsewhere = OtherCluster(watched=other.watched, open=lambda: other)
    test = replace(services.watched, name="test", cluster_id=ClusterId("c"), color="teal")
    app = PartiscopeApp(replace(services, watched=test), path="topics", others=[elsewhere])
    async with app.run_test(size=(160, 36)) as pilot:
        await settle(pilot, lambda: _path(app) == "topics", "the first view")
        await pilot.press("g", "c")
        await settle(pilot, lambda: _path(app) == "clusters", "the view of all")
        table = app.screen.query_one(RowTable)

        def cells(column: str) -> list[str]:
            at = table.shown.index(column)
            return [str(table.get_row_at(place)[at]) for place in range(table.row_count)]

        await settle(pilot, lambda: table.row_count == 2 and cells("topics") == ["6", "2"], "both")
        assert cells("cluster") == ["test", "prod"]
        assert cells("partitions") == ["48", "4"]
        assert cells("flags")[1] == "PRODUCTION"
        await pilot.press("down", "enter")
        await settle(pilot, lambda: "PRODUCTION prod" in _bar(app), "the other cluster")
        assert (_path(app), _topics(app)) == ("overview", 2)
    other.feed.stop()


async def test_one_cluster_has_no_switcher_and_plain_links(services: Services) -> None:
    app = PartiscopeApp(services, path="topics?cluster=whatever")
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("c")
        assert not isinstance(app.screen, ClustersScreen)
        assert "PRODUCTION" not in _bar(app)


async def test_the_past_of_a_cluster_is_not_shown_in_another(
    both: PartiscopeApp, held: HeldHistory
) -> None:
    async with both.run_test(size=(160, 36)) as pilot:
        await settle(pilot, lambda: _path(both) == "topics", "the topics")
        both.navigator.open(f"topics?at={(NOW_MS - 60_000) // 1000}")
        await settle(pilot, held.is_asked.is_set, "history is asked")
        await pilot.press("c", "enter")
        await settle(pilot, lambda: "PRODUCTION prod" in _bar(both), "the other cluster")
        held.may_answer.set()
        await both.workers.wait_for_complete()
        await pilot.pause()
        assert (both.session.at_ms, _topics(both)) == (None, 2)
        assert "you are looking at" not in _bar(both)


async def test_who_went_back_to_now_stays_there(both: PartiscopeApp, held: HeldHistory) -> None:
    async with both.run_test(size=(160, 36)) as pilot:
        await settle(pilot, lambda: _path(both) == "topics", "the topics")
        both.navigator.open(f"topics?at={(NOW_MS - 60_000) // 1000}")
        await settle(pilot, held.is_asked.is_set, "history is asked")
        await pilot.press("at", *"0s", "enter")
        held.may_answer.set()
        await both.workers.wait_for_complete()
        await pilot.pause()
        assert both.session.at_ms is None


async def test_figures_on_their_way_are_not_shown_in_another_cluster(
    both: PartiscopeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with both.run_test(size=(160, 36)) as pilot:
        await settle(pilot, lambda: _path(both) == "topics", "the topics")
        first = both.session.services
        late = replace(first.feed.current)
        await pilot.press("c", "enter")
        await settle(pilot, lambda: "PRODUCTION prod" in _bar(both), "the other cluster")
        shown: list[OperatorSnapshot] = []
        monkeypatch.setattr(type(both.screen), "receive", lambda _, it: shown.append(it))
        both.post_message(SnapshotArrived(late, first.feed))
        await pilot.pause()
        assert late not in shown


async def test_a_link_with_a_time_and_a_cluster_shows_that_time_of_that_cluster(
    both: PartiscopeApp,
) -> None:
    at_s = NOW_MS // 1000 - 20
    async with both.run_test(size=(160, 36)) as pilot:
        await settle(pilot, lambda: _path(both) == "topics", "the topics")
        both.navigator.open(f"groups?cluster=prod&at={at_s}&range=1h")
        await settle(pilot, lambda: both.session.at_ms == at_s * 1000, "that moment")
        assert (both.session.watched.name, _path(both), _topics(both)) == (
            "prod",
            "groups",
            2,
        )
        assert both.session.range.words == "1h"
        assert not both._notifications


async def test_two_links_to_another_cluster_at_once_end_at_the_last(both: PartiscopeApp) -> None:
    async with both.run_test(size=(160, 36)) as pilot:
        await settle(pilot, lambda: _path(both) == "topics", "the topics")
        both.navigator.open("groups?cluster=prod")
        both.navigator.open("brokers?cluster=prod")
        await settle(pilot, lambda: _path(both) == "brokers", "the second link")
        await pilot.press("escape", "escape")
        await settle(pilot, lambda: _path(both) == "overview", "the ground floor")
        assert (both.session.watched.name, len(both.screen_stack)) == ("prod", 2)
