"""When a broker's disk is full: what is free over what is written to all its replicas."""

from pathlib import Path

import pytest

from control.views.format import clock_text
from control.views.snapshots.snapshot import broker_page, build_snapshot
from control.views.tables.cells import full_cell, loses_cell
from control.views.tables.rows import Tone
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.unit.control import clusters

NOW_MS = 1_795_000_000_000


def test_followers_write_as_well_as_leaders(tmp_path: Path) -> None:
    sizes = SyntheticSizes(topics=2, partitions=3, brokers=3, replicas=3)
    StoreBuilder(tmp_path).write_synthetic(sizes, history_s=10, at_ms=NOW_MS)
    aggregates = AggregatesReader(str(tmp_path)).now()
    assert aggregates is not None
    snapshot = build_snapshot(aggregates.tables, version=1, now_ms=NOW_MS)
    written = sum(snapshot.cluster.partitions["in_bytes_per_s"].to_pylist())
    usable = snapshot.cluster.brokers["disk_usable_bytes"].to_pylist()
    expected = [free / written * 1000 for free in usable]  # every broker holds every partition
    assert snapshot.broker_table["full_ms"].to_pylist() == pytest.approx(expected)
    assert all(row.full_in.text for row in broker_page(snapshot).rows)


@pytest.mark.parametrize(
    ("full_ms", "words", "tone"),
    [
        (None, "n/a", Tone.PLAIN),
        (float("inf"), "> 1 y", Tone.PLAIN),
        (9 * 86_400_000 + 7_200_000, "≈ 9 d", Tone.PLAIN),
        (5 * 3_600_000, "≈ 5 h", Tone.WARNING),
        (10 * 60_000, "≈ 10 m", Tone.CRITICAL),
    ],
)
def test_the_largest_unit_is_enough(full_ms: float | None, words: str, tone: Tone) -> None:
    cell = full_cell(full_ms)
    assert (cell.text, cell.tone) == (words, tone)


def test_nothing_is_foretold_of_a_broker_that_is_down() -> None:
    since_ms = NOW_MS - 3_600_000
    down = clusters.broker(
        2, is_fenced=True, sampled_ms=since_ms, disk_total_bytes=10, disk_usable_bytes=9
    )
    alive = clusters.broker(1, sampled_ms=NOW_MS, disk_total_bytes=10, disk_usable_bytes=9)
    rows = clusters.tables(
        brokers=[alive, down], partitions=[clusters.partition("t", 0, [1, 2], isr=[1])]
    )
    first, second = broker_page(build_snapshot(rows, version=1, now_ms=NOW_MS)).rows
    assert (first.status.text, second.status.tone) == ("alive", Tone.CRITICAL)
    assert second.status.text == f"down since {clock_text(since_ms, now_ms=NOW_MS)}"
    assert [cell.text for cell in (second.full_in, second.skew)] == ["n/a", "n/a"]
    assert first.full_in.value is not None


@pytest.mark.parametrize(
    ("rates", "told"), [([None, None], "n/a"), ([1.0, None], "n/a"), ([0.5, 0.5], "≈ 1.0 s")]
)
def test_of_traffic_that_is_unknown_nothing_is_foretold(
    rates: list[float | None], told: str
) -> None:
    """As after an election or a restart, with a disk that is 99 % full."""
    rows = clusters.tables(
        brokers=[clusters.broker(1, sampled_ms=NOW_MS, disk_total_bytes=100, disk_usable_bytes=1)],
        partitions=[
            clusters.partition("t", number, [1], in_bytes_per_s=rate)
            for number, rate in enumerate(rates)
        ],
    )
    (row,) = broker_page(build_snapshot(rows, version=1, now_ms=NOW_MS)).rows
    assert row.full_in.text == told


def test_a_group_that_loses_nothing_at_its_pace_reads_as_a_disk_that_never_fills() -> None:
    assert loses_cell(400 * 86_400_000, lag=5).text == "> 1 y"
