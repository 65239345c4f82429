"""A reassignment that runs shows in the top bar and on the overview of the page."""

from control.views.snapshots.snapshot import build_snapshot
from dashboard.page_frame.shell import top_bar_texts
from dashboard.pages.overview import tiles
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS


def test_the_top_bar_and_the_tiles_say_how_many_partitions_move() -> None:
    brokers = [clusters.broker(number) for number in (1, 2)]
    moving = [clusters.partition("t", n, [2, 1], leader=1, isr=[1], adding_replicas=[2])
              for n in range(3)]  # fmt: skip
    snapshot = build_snapshot(
        clusters.tables(partitions=moving, brokers=brokers), version=1, now_ms=NOW_MS
    )
    assert "3 partitions moving" in str(top_bar_texts(snapshot, NOW_MS))
    assert "/moves" in str(top_bar_texts(snapshot, NOW_MS))
    assert "3 partitions moving" in str(tiles(snapshot)).replace("\\xa0", " ")
    still = build_snapshot(clusters.tables(brokers=brokers), version=1, now_ms=NOW_MS)
    assert "partitions moving" not in str(top_bar_texts(still, NOW_MS))
    assert "moving" not in str(tiles(still))
