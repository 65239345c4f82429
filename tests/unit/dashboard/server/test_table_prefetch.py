"""Tables are made ahead of those who look at them, and of nobody else."""

from pathlib import Path

from control.views.snapshots import snapshot as views
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.store import StoreReader
from dashboard.server.table_prefetch import LOOKED_S_MAX, TABLES, TablePrefetch
from tests.support.store_builder import StoreBuilder, SyntheticSizes

SIZES = SyntheticSizes(topics=2, partitions=3)


def test_what_is_looked_at_is_ready_with_the_version_and_the_rest_is_not(tmp_path: Path) -> None:
    clock = [100.0]
    ahead = TablePrefetch(lambda: clock[0])
    feed = SnapshotFeed(StoreReader(str(tmp_path)))
    feed.subscribe(ahead.follow)
    writer = StoreBuilder(tmp_path)

    def made_of_the_next() -> list[str]:
        writer.write_synthetic(SIZES, history_s=0)
        assert feed.refresh()
        return [name for name in TABLES if name in vars(feed.current)]

    assert made_of_the_next() == [], "nobody has looked yet"
    views.partition_page(feed.current)
    assert made_of_the_next() == [], "it was no page that looked"
    views.partition_page(feed.current)
    ahead.asked()
    assert made_of_the_next() == ["partition_table"]
    assert made_of_the_next() == ["partition_table"]
    clock[0] += LOOKED_S_MAX
    assert made_of_the_next() == [], "nobody looks any more"
