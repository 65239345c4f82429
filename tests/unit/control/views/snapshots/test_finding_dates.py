"""Findings say since when they stand, the same whoever asks and whenever they began to look."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control.model.finding import Finding
from control.model.ids import ClusterId
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.finding_dates import MINUTE_MS, begin_of
from control.views.snapshots.past import snapshot_at
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import StoreBuilder
from tests.unit.control import clusters

NOW_MS = 1_790_000_000_000 // MINUTE_MS * MINUTE_MS + 42_000
HERE = ClusterId("c")
GIB = 1 << 30
HOUR_MS = 60 * MINUTE_MS


def brokers_at(at_ms: int, *sizes: int) -> list[dict[str, Any]]:
    """A point of each broker, from 1 on, and one of their sums."""
    rows = [
        {"cluster": "c", "broker": number, "at_ms": at_ms, "size_bytes": size, "replicas": 20,
         "leaders": 7, "readings": 1, "disk_total_bytes": 100, "disk_usable_bytes": 50}
        for number, size in enumerate(sizes, 1)
    ]  # fmt: skip
    return [*rows, {**rows[0], "broker": -1, "size_bytes": sum(sizes)}]


def now_of(*sizes: int, isr: tuple[int, ...] = (1, 2, 3)) -> dict[str, list[dict[str, Any]]]:
    """Three brokers that hold so much, in 21 partitions each of one replica, and one of three."""
    partitions = [
        clusters.partition("t", number, [1 + number % 3], size_bytes=sizes[number % 3] // 21)
        for number in range(63)
    ]
    partitions.append(clusters.partition("u", 0, [1, 2, 3], isr=list(isr), size_bytes=0))
    return {
        "brokers": [clusters.broker(n, sampled_ms=NOW_MS, read_ms=NOW_MS) for n in (1, 2, 3)],
        "partitions": [{**row, "read_ms": NOW_MS} for row in partitions],
    }


def skewed_store(folder: Path, *, skewed_for_ms: int, kept_ms: int) -> AggregatesReader:
    """Even until broker 1 held three times as much, a point every half minute."""
    rows: list[dict[str, Any]] = []
    for back_ms in range(kept_ms, -1, -MINUTE_MS // 2):
        sizes = (3 * GIB, GIB, GIB) if back_ms <= skewed_for_ms else (GIB, GIB, GIB)
        rows += brokers_at(NOW_MS - back_ms, *sizes)
    StoreBuilder(folder).write(now_of(3 * GIB, GIB, GIB), broker_history=rows)
    return AggregatesReader(str(folder))


def looked_at(reader: AggregatesReader, now_ms: int = NOW_MS) -> OperatorSnapshot:
    """As ``partiscope status`` does."""
    found = reader.now()
    assert found is not None
    return build_snapshot(
        found.tables, version=found.version, now_ms=now_ms, cluster=HERE, history=reader
    )


def skew_of(snapshot: OperatorSnapshot) -> Finding:
    (found,) = [item for item in snapshot.findings if item.kind == "skew-bytes"]
    return found


@pytest.mark.parametrize("minutes", [10, 119, 200])
def test_each_look_at_a_skew_says_the_same_time(tmp_path: Path, minutes: int) -> None:
    reader = skewed_store(tmp_path, skewed_for_ms=minutes * MINUTE_MS, kept_ms=4 * HOUR_MS)
    began_ms = (NOW_MS - minutes * MINUTE_MS) // MINUTE_MS * MINUTE_MS
    first, later = looked_at(reader), looked_at(reader, NOW_MS + 17_000)
    assert skew_of(first).since_ms == skew_of(later).since_ms == began_ms
    feed = SnapshotFeed(reader, cluster=HERE, now_ms=lambda: NOW_MS + 5_000, history=reader)
    feed.refresh()
    assert skew_of(feed.current).since_ms == began_ms, "page and terminal"


@pytest.mark.parametrize("days", [3, 30])
def test_a_skew_of_days_is_dated_to_the_minute_and_then_to_the_hour(
    tmp_path: Path, days: int
) -> None:
    began_ms = NOW_MS - days * 24 * HOUR_MS
    rows: list[dict[str, Any]] = []
    for at_ms in range(NOW_MS - 40 * 24 * HOUR_MS, NOW_MS + 1, 15 * MINUTE_MS):
        rows += brokers_at(at_ms, *((3 * GIB if at_ms >= began_ms else GIB), GIB, GIB))
    StoreBuilder(tmp_path).write(now_of(3 * GIB, GIB, GIB), broker_history=rows)
    step_ms = MINUTE_MS if days < 7 else HOUR_MS
    since_ms = skew_of(looked_at(AggregatesReader(str(tmp_path)))).since_ms
    assert since_ms == began_ms // step_ms * step_ms


def test_a_skew_that_stood_as_long_as_history_is_dated_by_its_begin(tmp_path: Path) -> None:
    reader = skewed_store(tmp_path, skewed_for_ms=HOUR_MS, kept_ms=HOUR_MS)
    since_ms = skew_of(looked_at(reader)).since_ms
    assert since_ms == (NOW_MS - HOUR_MS) // MINUTE_MS * MINUTE_MS


def test_a_past_moment_says_the_time_too(tmp_path: Path) -> None:
    reader = skewed_store(tmp_path, skewed_for_ms=30 * MINUTE_MS, kept_ms=HOUR_MS)
    past = snapshot_at(reader, cluster=HERE, at_ms=NOW_MS - 10 * MINUTE_MS)
    assert past is not None
    dates = {item.since_ms for item in past.findings if item.kind.startswith("skew")}
    assert dates <= {(NOW_MS - 30 * MINUTE_MS) // MINUTE_MS * MINUTE_MS}


def test_partitions_are_dated_by_the_one_that_is_so_for_longest(tmp_path: Path) -> None:
    rows = [
        {"cluster": "c", "topic": "u", "partition": 0, "at_ms": NOW_MS - minute * MINUTE_MS,
         "leader": 1, "replicas": "1 2 3", "isr": "1 2", "isr_count": 3 if minute > 25 else 2,
         "replicas_count": 3, "min_isr": 1, "readings": 1}
        for minute in range(60, -1, -1)
    ]  # fmt: skip
    now = now_of(GIB, GIB, GIB, isr=(1, 2))
    StoreBuilder(tmp_path).write(now, partition_history=rows)
    (lacking,) = looked_at(AggregatesReader(str(tmp_path))).findings
    assert lacking.kind == "under-replicated"
    assert lacking.since_ms == (NOW_MS - 25 * MINUTE_MS) // MINUTE_MS * MINUTE_MS


def test_what_no_history_tells_of_begins_when_it_is_first_seen(tmp_path: Path) -> None:
    """At the first look nobody knows for how long it stood."""
    StoreBuilder(tmp_path).write(now_of(3 * GIB, GIB, GIB))
    found = AggregatesReader(str(tmp_path)).now()
    assert found is not None

    def look(now_ms: int, earlier: OperatorSnapshot | None, rows: Any) -> OperatorSnapshot:
        known = None if earlier is None else earlier.findings
        return build_snapshot(rows, version=1, now_ms=now_ms, cluster=HERE, earlier=known)

    first = look(NOW_MS, None, found.tables)
    assert skew_of(first).since_ms is None
    assert skew_of(look(NOW_MS + 1_000, first, found.tables)).since_ms is None
    even = look(NOW_MS, None, clusters.tables(**now_of(GIB, GIB, GIB)))
    begun = look(NOW_MS + 2_000, even, found.tables)
    assert skew_of(begun).since_ms == NOW_MS + 2_000
    assert skew_of(look(NOW_MS + 9_000, begun, found.tables)).since_ms == NOW_MS + 2_000


def test_a_skew_keeps_id_and_date_while_its_figures_and_its_broker_change(tmp_path: Path) -> None:
    """One alert, however the worst broker changes."""
    earlier, told = None, []
    for minute, sizes in enumerate(((3, 1, 1), (4, 1, 1), (1, 3, 1), (3, 3, 0.1), (1, 1, 2))):
        StoreBuilder(tmp_path / str(minute)).write(now_of(*(int(it * GIB) for it in sizes)))
        found = AggregatesReader(str(tmp_path / str(minute))).now()
        assert found is not None
        at_ms = NOW_MS + minute * MINUTE_MS
        earlier = build_snapshot(
            found.tables,
            version=minute + 1,
            now_ms=at_ms,
            cluster=HERE,
            earlier=() if earlier is None else earlier.findings,
        )
        told.append(skew_of(earlier))
    assert {(it.id, it.since_ms) for it in told} == {("skew-bytes", NOW_MS)}
    assert {it.label for it in told} == {"broker 1", "broker 2", "broker 3"}
    assert len({it.severity for it in told}) == 2


def test_the_newest_stretch_counts() -> None:
    at_ms = np.array([1, 2, 3, 4])
    assert begin_of(at_ms, np.array([True, False, True, True])) == (3, False)
    assert begin_of(at_ms, np.array([True] * 4)) == (1, True)
    assert begin_of(at_ms, np.array([True, True, True, False])) == (None, False)
    assert begin_of(at_ms[:0], np.array([], dtype=np.bool_)) == (None, False)
