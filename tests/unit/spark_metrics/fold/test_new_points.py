"""Points of brokers: sums of what they lead."""

import pyarrow as pa

from spark_metrics.fold.new_points import Clocks, sum_points
from spark_metrics.window.aggregates import ALL_BROKERS
from spark_metrics.window.tables import NOW_TABLES
from tests.support.store_builder import (
    CLUSTER,
    SyntheticSizes,
    sums_of_now,
    synthetic_rows,
    table_of,
)

AT_MS = 1_795_000_000_000
BROKERS = (101, 102, 103)


def test_a_rate_that_nobody_knows_is_not_summed_up_to_zero() -> None:
    rows = synthetic_rows(SyntheticSizes(topics=2, partitions=4), at_ms=AT_MS)
    for row in rows["partitions"]:
        row["leader"] = 101 + row["partition"] % 2  # 103 leads nothing
        row["out_bytes_per_s"] = None  # as of a cluster that is only watched
    now = {name: table_of(rows[name], schema) for name, schema in NOW_TABLES.items()}
    clocks = Clocks(before_ms={}, now_ms={CLUSTER: AT_MS})
    points = sum_points(sums_of_now(now), now, clocks)["broker_history"]
    out = _by_broker(points, "out_bytes_per_s")
    assert [out[broker] for broker in (*BROKERS, ALL_BROKERS)] == [None, None, 0.0, None]
    incoming = _by_broker(points, "in_bytes_per_s")
    assert incoming[ALL_BROKERS] == sum(incoming[broker] or 0.0 for broker in BROKERS)
    assert incoming[101]


def _by_broker(points: pa.Table, name: str) -> dict[int, float | None]:
    return dict(zip(points["broker"].to_pylist(), points[name].to_pylist(), strict=True))


def test_a_broker_that_is_started_anew_is_no_dip_of_traffic() -> None:
    """Its partitions have no rate until the second reading: the sums with them are unknown."""
    rows = synthetic_rows(SyntheticSizes(topics=2, partitions=400), at_ms=AT_MS)
    for row in rows["partitions"]:
        row["leader"], row["in_bytes_per_s"] = 101 + row["partition"] % 3, 10.0
    restarted = [{**it, "in_bytes_per_s": None if it["leader"] == 101 else 10.0}
                 for it in rows["partitions"]]  # fmt: skip
    one = [{**it, "in_bytes_per_s": 10.0 if n else None} for n, it in enumerate(rows["partitions"])]
    found = {}
    for name, partitions in {"all": rows["partitions"], "restarted": restarted, "one": one}.items():
        now = {table: table_of(rows[table], schema) for table, schema in NOW_TABLES.items()}
        now["partitions"] = table_of(partitions, NOW_TABLES["partitions"])
        points = sum_points(sums_of_now(now), now, Clocks(before_ms={}, now_ms={CLUSTER: AT_MS}))
        incoming = _by_broker(points["broker_history"], "in_bytes_per_s")
        found[name] = [incoming[it] for it in (*BROKERS, ALL_BROKERS)]
        topics = points["topic_history"]["in_bytes_per_s"].to_pylist()
        assert None not in topics or name == "restarted"
    assert found["restarted"] == [None, found["all"][1], found["all"][2], None]
    assert found["one"][-1] == (len(one) - 1) * 10.0, "one of many is no matter"
