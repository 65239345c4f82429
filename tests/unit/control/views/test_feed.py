"""The feed: new versions arrive, broken stores do no harm, many may listen."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.views.feed import STORE_KIND, SnapshotFeed
from control.views.snapshot import OperatorSnapshot
from spark_metrics.aggregates import AggregatesReader
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

    found = feed.wait_for(lambda snapshot: not snapshot.is_empty, timeout_s=5)

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
    feed.wait_for(lambda snapshot: snapshot.version > 0, timeout_s=5)
    feed.stop()

    assert heard[0] == manifest.version
    assert "a listener of the snapshot feed failed" in caplog.text


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
    feed.wait_for(lambda snapshot: snapshot.version > 0, timeout_s=5)
    feed.stop()

    assert heard == []


async def test_snapshots_come_as_they_appear(feed: SnapshotFeed, tmp_path: Path) -> None:
    feed.start()
    versions: list[int] = []
    builder = StoreBuilder(tmp_path)

    async with asyncio.timeout(5):
        async for snapshot in feed.snapshots():
            versions.append(snapshot.version)
            if len(versions) == 3:
                break
            builder.write_synthetic(SIZES, history_s=0)

    assert versions[0] == 0
    assert versions[1] < versions[2]
