"""What a lost broker or rack does, on small clusters counted by hand."""

from typing import Any

import pytest

from control.views.cluster.what_if import Loss, hit_page, losses, wanted_loss, what_if
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.tables.query import TableQuery
from spark_metrics.window.tables import NOW_TABLES
from tests.support.store_builder import table_of

CLUSTER = "c"


def snapshot_of(partitions: list[dict[str, Any]], racks: dict[int, str | None]) -> OperatorSnapshot:
    rows: dict[str, list[dict[str, Any]]] = {
        "brokers": [
            {"cluster": CLUSTER, "broker": broker, "rack": rack, "is_fenced": False,
             "interval_ms": 1_000, "sampled_ms": 1_000}
            for broker, rack in racks.items()
        ],
        "partitions": [
            {"cluster": CLUSTER, "topic": "t", "partition": number, "adding_replicas": [],
             "removing_replicas": [], "min_isr": 1, "in_bytes_per_s": 100.0,
             "out_bytes_per_s": 50.0, **row}
            for number, row in enumerate(partitions)
        ],
        "commits": [
            {"cluster": CLUSTER, "group_id": "g", "topic": "t", "partition": 1,
             "committed_offset": 1, "lag": 7, "read_ms": 1_000}
        ],
    }  # fmt: skip
    tables = {name: table_of(rows.get(name, []), schema) for name, schema in NOW_TABLES.items()}
    return build_snapshot(tables, version=1, now_ms=1_000)


@pytest.fixture
def snapshot() -> OperatorSnapshot:
    return snapshot_of(
        [
            {"leader": 1, "replicas": [1, 2, 3], "isr": [3, 1, 2]},
            {"leader": 1, "replicas": [1, 2], "isr": [1]},
            {"leader": 2, "replicas": [2, 3], "isr": [2, 3], "min_isr": 2},
            {"leader": 3, "replicas": [3, 1], "isr": [1, 3], "min_isr": 2},
        ],
        {1: "a", 2: "b", 3: "b"},
    )


def broker(number: int) -> Loss:
    return Loss(kind="broker", value=str(number), brokers=(number,))


def test_the_first_replica_in_sync_leads_and_without_one_the_partition_is_offline(
    snapshot: OperatorSnapshot,
) -> None:
    answer = what_if(snapshot, broker(1))

    leaders = answer.after.cluster.partitions["leader"].to_pylist()
    assert leaders == [2, -1, 2, 3]
    assert answer.after.cluster.partitions["isr"].to_pylist() == [[3, 2], [], [2, 3], [3]]
    assert answer.offline.text == "1"
    assert answer.under_min_isr.text == "1"
    assert answer.new_leaders.text == "2"
    assert answer.replicas.text == "3"
    assert answer.groups.text == "g"


def test_survivors_show_what_they_lead_now_and_then(snapshot: OperatorSnapshot) -> None:
    rows = {row.key: row for row in what_if(snapshot, broker(1)).survivors}

    assert sorted(rows) == ["2", "3"]
    assert rows["2"].leaders.text == "1"
    assert rows["2"].leaders_after.text == "2 (+1)"
    assert rows["2"].in_bytes_after.text == "200 B/s (+100 B/s)"
    assert rows["3"].leaders_after.text == "1"


def test_hit_partitions_come_worst_first(snapshot: OperatorSnapshot) -> None:
    page = hit_page(what_if(snapshot, broker(1)))

    assert [row.key for row in page.rows] == ["t-1", "t-3", "t-0"]
    assert [row.status.text for row in page.rows] == [
        "offline",
        "under-min-isr",
        "under-replicated",
    ]
    assert hit_page(what_if(snapshot, broker(1)), TableQuery(limit=1)).matching == 3


def test_a_rack_is_all_of_its_brokers(snapshot: OperatorSnapshot) -> None:
    asked = {(loss.kind, loss.value): loss.brokers for loss in losses(snapshot)}

    assert asked[("rack", "b")] == (2, 3)
    loss = wanted_loss(snapshot, {"rack": "b"})
    assert loss is not None
    assert what_if(snapshot, loss).offline.text == "1"
    assert wanted_loss(snapshot, {"broker": "99"}) is None
    assert wanted_loss(snapshot, {}) is None


def test_nothing_that_stands_already_is_told_as_new(snapshot: OperatorSnapshot) -> None:
    kinds = {row.key.split(" ")[0] for row in what_if(snapshot, broker(1)).findings}

    assert {"offline", "under-min-isr", "broker-fenced"} <= kinds
    already = what_if(snapshot, broker(1)).after
    assert what_if(already, broker(1)).findings == ()


def test_the_map_of_lag_shows_which_broker_carries_it() -> None:
    now = snapshot_of(
        [
            {"leader": 1, "replicas": [1, 2], "isr": [1, 2]},
            {"leader": 2, "replicas": [2, 1], "isr": [2, 1]},
        ],
        {1: "a", 2: "b"},
    )
    heat = now.heat_map("lag")

    assert list(heat.topics) == ["t"]
    assert heat.values[0][0] != heat.values[0][0], "NaN: nothing waits on broker 1"
    assert heat.values[1][0] == 7


def test_a_broker_without_a_rack_is_named_with_each_rack() -> None:
    found = losses(snapshot_of([], {1: "a", 2: "b", 9: None}))
    assert [loss.words for loss in found if loss.kind == "rack"] == [
        "rack a (rack of 9 unknown)",
        "rack b (rack of 9 unknown)",
    ]
    assert [loss.words for loss in losses(snapshot_of([], {1: "a"}))] == ["broker 1", "rack a"]
