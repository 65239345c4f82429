"""Figures that cannot be read, as the page says it."""

from pathlib import Path

from control.views.snapshots.feed import SnapshotFeed
from dashboard.live.push import news
from dashboard.pages.overview import findings
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import StoreBuilder, SyntheticSizes


def test_a_store_that_cannot_be_read_is_told_before_there_is_any_figure(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b"{")
    feed = SnapshotFeed(AggregatesReader(str(tmp_path)))
    feed.refresh()

    assert "cannot be read" in str(findings(feed.current))
    assert "No data yet" not in str(findings(feed.current))


def test_open_pages_are_told_that_figures_cannot_be_read(tmp_path: Path) -> None:
    StoreBuilder(tmp_path).write_synthetic(SyntheticSizes(), history_s=0)
    clock = [1_000_000]
    feed = SnapshotFeed(AggregatesReader(str(tmp_path)), now_ms=lambda: clock[0])
    feed.refresh()
    good = news(feed.current)
    clock[0] += 250
    (tmp_path / "manifest.json").write_bytes(b"{")
    feed.refresh()

    assert news(feed.current) != good
    assert "cannot be read" in str(findings(feed.current))
