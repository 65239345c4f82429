"""Racks where one broker does not tell its bytes, or has no rack."""

from control.views.cluster.racks import rack_rows
from control.views.snapshots.snapshot import broker_page, build_snapshot
from control.views.tables.rows import Tone
from tests.unit.control.clusters import MIB, NOW_MS, broker, partition, replica, tables


def test_a_broker_without_bytes_leaves_only_its_own_rack_without_a_skew() -> None:
    racks = {1: "a", 2: "b", 3: "c", 9: None}
    sizes = {1: 60 * MIB, 2: 30 * MIB, 3: 30 * MIB, 9: None}
    partitions = [partition(f"t{b}", 0, (b,), size_bytes=size) for b, size in sizes.items()]
    rows = tables(
        brokers=[broker(b, rack=rack) for b, rack in racks.items()],
        partitions=partitions,
        replicas=[replica(f"t{b}", 0, b, size_bytes=sizes[b]) for b in (1, 2, 3)],
    )
    snapshot = build_snapshot(rows, version=1, now_ms=NOW_MS)
    found = {row.key: row for row in rack_rows(broker_page(snapshot).rows)}
    assert {name: row.skew.text for name, row in found.items()} == {
        "a": "+50 %",
        "b": "−25 %",
        "c": "−25 %",
        "–": "n/a",
    }


def test_a_rack_tells_which_of_its_brokers_are_down() -> None:
    racks = {1: "a", 2: "b", 3: "b", 4: "b"}
    rows = tables(
        brokers=[broker(b, rack=rack, is_fenced=b in (2, 3)) for b, rack in racks.items()],
        partitions=[partition("t", 0, [1, 2, 3, 4], isr=[1, 4])],
    )
    snapshot = build_snapshot(rows, version=1, now_ms=NOW_MS)
    first, second = (row.brokers for row in rack_rows(broker_page(snapshot).rows))
    assert (first.text, first.tone) == ("1", Tone.PLAIN)
    assert (second.value, second.text, second.tone) == (3, "3, 2 down", Tone.CRITICAL)
