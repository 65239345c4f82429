"""The feed: new versions arrive, broken stores do no harm, many may listen."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import STORE_KIND, OperatorSnapshot
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.support.store_builder import StoreBuilder, SyntheticSizes

SIZES = SyntheticSizes(topics=2, partitions=3)


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[SnapshotFeed]:
    feed = SnapshotFeed(AggregatesReader(str(tmp_path)), interval_s=0.01)
    yield feed
    feed.stop()


def test_without_a_store_there_is_an_empty_snapshot(feed: SnapshotFeed) -> None:
    feed.start()

    assert feed.current.is_empty
    assert feed.current.version == 0


def test_a_new_version_arrives_by_itself(feed: SnapshotFeed, tmp_path: Path) -> None:
    feed.start()
    manifest = StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0)

    found = feed.wait_for(lambda snapshot: not snapshot.is_empty, timeout_s=WAIT_S)

    assert found.version == manifest.version
    assert found.headline.partitions.value == 6


def test_an_unchanged_store_is_not_built_again(feed: SnapshotFeed, tmp_path: Path) -> None:
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0)

    assert feed.refresh()
    first = feed.current
    assert not feed.refresh()
    assert feed.current is first


def test_an_unchanged_store_is_judged_again_after_a_while(tmp_path: Path) -> None:
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0, at_ms=1_000_000)
    clock = [1_000_500]
    feed = SnapshotFeed(AggregatesReader(str(tmp_path)), now_ms=lambda: clock[0])
    feed.refresh()
    assert not any(item.kind == "cluster-silent" for item in feed.current.findings)

    clock[0] += 3_000
    assert not feed.refresh()

    clock[0] += 2_400
    assert feed.refresh(), "as soon as it is so, not some seconds later"
    assert any(item.kind == "cluster-silent" for item in feed.current.findings)
    assert not feed.refresh()


def test_an_unreadable_store_is_a_finding_and_the_last_good_snapshot_stays(
    feed: SnapshotFeed, tmp_path: Path
) -> None:
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0)
    feed.refresh()
    manifest = tmp_path / "manifest.json"
    good = manifest.read_bytes()

    manifest.write_bytes(b"{")
    assert feed.refresh()
    assert not feed.refresh(), "the same failure is not news"
    broken = feed.current
    manifest.write_bytes(good)
    assert feed.refresh()

    assert broken.headline.partitions.value == 6
    assert [item.kind for item in broken.findings if item.kind == STORE_KIND] == [STORE_KIND]
    assert not any(item.kind == STORE_KIND for item in feed.current.findings)


class SpoiltReader(AggregatesReader):
    """A real store; while ``error`` is set, reading it fails in a way that nobody expected."""

    error: Exception | None = None

    def now(self) -> Any:
        if self.error is not None:
            raise self.error
        return super().now()


def test_an_unexpected_error_is_told_on_the_screens_logged_once_and_heals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [1_000_000]
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0, at_ms=clock[0])
    reader = SpoiltReader(str(tmp_path))
    feed = SnapshotFeed(reader, now_ms=lambda: clock[0])
    feed.refresh()
    good = feed.current

    reader.error = ValueError("a column of 3 where 4 are wanted")
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0, at_ms=clock[0])
    clock[0] += 59_000
    changes = [feed.refresh() for _ in range(5)]
    broken = feed.current
    assert changes == [True, False, False, False, False], "the same failure is not news"
    assert broken.headline.partitions.value == 6, "the last good figures stay"
    assert broken.age_ms(clock[0]) == 59_000
    assert (broken.version, broken.built_ms) != (good.version, good.built_ms), "pages are told"
    (row,) = [row for row in broken.finding_rows if row.label.text == "figures"]
    assert "ValueError: a column of 3 where 4 are wanted" in row.reason.text
    assert broken.health.text == "figures cannot be read"
    assert [record.exc_info is None for record in caplog.records] == [False]

    clock[0] += 61_000
    feed.refresh()
    assert [record.exc_info is None for record in caplog.records] == [False, False]
    assert "4 times more" in caplog.records[-1].getMessage()

    reader.error = None
    assert feed.refresh()
    assert not any(item.kind == STORE_KIND for item in feed.current.findings)
    assert feed.current.version > good.version


def test_an_error_while_old_figures_are_judged_anew_stays_told(tmp_path: Path) -> None:
    clock = [1_000_000]
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0, at_ms=clock[0])
    reader = SpoiltReader(str(tmp_path))
    feed = SnapshotFeed(reader, now_ms=lambda: clock[0])
    feed.refresh()
    reader.error = ValueError("spoilt")
    clock[0] += 10_000
    feed.refresh()
    clock[0] += 250
    feed.refresh()
    assert feed.current.health.text == "figures cannot be read"
    reader.error = None
    assert feed.refresh()
    assert feed.current.health.text != "figures cannot be read"


def test_an_unexpected_error_at_the_first_look_leaves_the_feed_running(tmp_path: Path) -> None:
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0)
    reader = SpoiltReader(str(tmp_path))
    reader.error = ValueError("spoilt")
    feed = SnapshotFeed(reader, interval_s=0.01)
    feed.start()
    assert feed.current.is_empty
    assert feed.current.health.text == "figures cannot be read"
    reader.error = None
    assert not feed.wait_for(lambda it: not it.is_empty, timeout_s=WAIT_S).is_empty
    feed.stop()


def test_a_listener_that_fails_does_not_stop_the_others(
    feed: SnapshotFeed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []

    def fail(_: OperatorSnapshot) -> None:
        raise ValueError("a broken screen")

    feed.subscribe(fail)
    feed.subscribe(lambda snapshot: heard.append(snapshot.version))
    feed.start()
    manifest = StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0)
    feed.wait_for(lambda snapshot: snapshot.version > 0, timeout_s=WAIT_S)
    feed.stop()

    assert heard[0] == manifest.version
    assert not lacking(caplog.text, "listener", "snapshot feed failed")


def test_a_refresh_by_hand_tells_the_listeners(feed: SnapshotFeed, tmp_path: Path) -> None:
    heard: list[int] = []
    feed.subscribe(lambda snapshot: heard.append(snapshot.version))
    manifest = StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0)

    assert feed.refresh()

    assert heard == [manifest.version]


def test_who_unsubscribed_hears_no_more(feed: SnapshotFeed, tmp_path: Path) -> None:
    heard: list[int] = []
    feed.subscribe(lambda snapshot: heard.append(snapshot.version))()
    feed.start()
    StoreBuilder(tmp_path).write_synthetic(SIZES, history_s=0)
    feed.wait_for(lambda snapshot: snapshot.version > 0, timeout_s=WAIT_S)
    feed.stop()

    assert heard == []


async def test_snapshots_come_as_they_appear(feed: SnapshotFeed, tmp_path: Path) -> None:
    feed.start()
    versions: list[int] = []
    last: object = None
    builder = StoreBuilder(tmp_path)

    async with asyncio.timeout(WAIT_S):
        async for snapshot in feed.snapshots():
            assert snapshot is not last, "each is told once"
            last = snapshot
            if [snapshot.version] == versions[-1:]:
                continue  # the same one, judged anew as time goes by
            versions.append(snapshot.version)
            if len(versions) == 3:
                break
            builder.write_synthetic(SIZES, history_s=0)

    assert versions[0] == 0
    assert versions[1] < versions[2]
