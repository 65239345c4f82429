"""What the page shows of a past moment: tables and findings of then, or that nothing is kept."""

import time
from pathlib import Path

import pytest

from control.views import snapshot as views
from dashboard import times
from dashboard.context import Screen
from dashboard.shown import shown
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.unit.dashboard.screens import screen_on

MINUTE_MS = 60_000


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    """Ten minutes ago every fourth partition was offline; now all are well."""
    now_ms = time.time_ns() // 1_000_000
    builder = StoreBuilder(tmp_path / "store")
    then = SyntheticSizes(topics=3, partitions=4, offline_every=4)
    builder.write_synthetic(then, history_s=30, at_ms=now_ms - 10 * MINUTE_MS)
    builder.write_synthetic(SyntheticSizes(topics=3, partitions=4), history_s=30, at_ms=now_ms)
    return screen_on(tmp_path / "store", sizes=None)


def at(screen: Screen, ago_ms: int) -> dict[str, str]:
    return {"at": str(screen.now_ms() - ago_ms)}


def test_tables_and_findings_are_of_then(screen: Screen) -> None:
    past = shown(screen, at(screen, 10 * MINUTE_MS))
    offline = [row for row in past.finding_rows if "offline" in row.title.text]
    assert offline[0].title.text == "3 partitions offline"
    statuses = [row.status.text for row in views.partition_page(past).rows]
    assert statuses.count("offline") == 3
    assert not [row for row in shown(screen, {}).finding_rows if "offline" in row.title.text]


def test_one_moment_is_read_once(screen: Screen) -> None:
    moment = at(screen, 10 * MINUTE_MS)
    assert shown(screen, moment) is shown(screen, moment)


def test_the_bar_says_when_or_that_nothing_is_kept(screen: Screen) -> None:
    words = times.past_words(screen, at(screen, 10 * MINUTE_MS))
    assert words.startswith("you are looking at ")
    assert "(10 m ago)" in words
    assert times.past_words(screen, {"at": "400d"}).startswith("nothing is kept of ")
    assert times.past_words(screen, {}) == ""
    assert times.past_words(screen, {"at": "noon"}) == ""
