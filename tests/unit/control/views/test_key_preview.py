"""The line under the key field."""

from control.views.key_preview import key_line, partition_count
from control.views.snapshots.snapshot import build_snapshot
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS

SNAPSHOT = build_snapshot(
    clusters.tables(
        brokers=[clusters.broker(102, rack="b")],
        partitions=[
            clusters.partition("orders", 0, [102]),
            clusters.partition("orders", 1, [102], leader=-1),
        ],
    ),
    version=1,
    now_ms=NOW_MS,
)


def test_the_first_rule_is_told_with_its_leader() -> None:
    line = key_line({"murmur2": 0, "crc32": 1}, SNAPSHOT, "orders")

    assert line == "murmur2 → 0 (leader 102, rack b) · crc32 → 1"


def test_without_a_leader_or_a_rule_it_says_so() -> None:
    assert key_line({"murmur2": 1}, SNAPSHOT, "orders") == "murmur2 → 1 (no leader)"
    assert key_line({"crc32": None}, SNAPSHOT, "orders") == "crc32 → any"


def test_partitions_are_counted() -> None:
    assert partition_count(SNAPSHOT, "orders") == 2
    assert partition_count(SNAPSHOT, "nothing") == 0
