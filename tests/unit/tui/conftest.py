"""The terminal on a synthetic store whose clock stands still."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tui.terminal_session import Services

NOW_MS = 1_795_000_000_000


@pytest.fixture(scope="session")
def written_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six topics of eight partitions, five groups, three brokers: written once, to be copied."""
    store = tmp_path_factory.mktemp("written")
    sizes = SyntheticSizes(topics=6, partitions=8, groups=5)
    StoreBuilder(store).write_synthetic(sizes, history_s=300, at_ms=NOW_MS)
    return store


@pytest.fixture
def services(written_store: Path, tmp_path: Path) -> Iterator[Services]:
    """That store, to be written on; nobody to act on."""
    shutil.copytree(written_store, tmp_path, dirs_exist_ok=True)
    reader = AggregatesReader(str(tmp_path))
    feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS)
    yield Services(
        feed=feed,
        history=reader,
        watched=WatchedCluster(bootstrap="127.0.0.1:1"),
        bus="127.0.0.1:1",
        now_ms=lambda: NOW_MS,
    )
    feed.stop()


@pytest.fixture
def read_only(services: Services) -> Services:
    """The same, for looking only."""
    return replace(services, watched=replace(services.watched, is_read_only=True))
