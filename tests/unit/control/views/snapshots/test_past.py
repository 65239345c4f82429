"""A past moment shows what the screens showed then."""

from pathlib import Path

import pytest

from control.model.ids import ClusterId, TopicPartition
from control.views.snapshots.past import NothingKeptError, look_back, snapshot_at
from control.views.snapshots.snapshot import (
    OperatorSnapshot,
    broker_page,
    build_snapshot,
    group_page,
    group_partition_page,
    partition_page,
    replica_rows,
    topic_page,
)
from control.views.tables.query import TableQuery
from control.views.tables.rows import Row, Tone
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import CLUSTER, StoreBuilder, SyntheticSizes

AT_MS = 1_790_000_000_000
HERE = ClusterId(CLUSTER)
NOT_KEPT = {"member", "state", "age"}


@pytest.fixture
def reader(tmp_path: Path) -> AggregatesReader:
    sizes = SyntheticSizes(topics=3, partitions=4, brokers=4, offline_every=5)
    StoreBuilder(tmp_path).write_synthetic(sizes, history_s=60, at_ms=AT_MS)
    return AggregatesReader(str(tmp_path))


def rows_of(snapshot: OperatorSnapshot) -> list[Row]:
    query = TableQuery(limit=1_000)
    pages = (
        topic_page(snapshot, query),
        partition_page(snapshot, query),
        broker_page(snapshot, query),
        group_page(snapshot, query),
        group_partition_page(snapshot, query, group="group-1"),
    )
    replicas = replica_rows(snapshot, TopicPartition("topic-0", 1))
    return [*(row for page in pages for row in page.rows), *replicas]


def texts(row: Row) -> dict[str, str]:
    return {name: cell.text for name, cell in row.cells.items() if name not in NOT_KEPT}


def test_tables_and_findings_of_a_moment_are_those_that_were_shown(
    reader: AggregatesReader,
) -> None:
    now = reader.now()
    assert now is not None
    live = build_snapshot(
        now.tables, version=now.version, now_ms=AT_MS, cluster=HERE, history=reader
    )
    past = snapshot_at(reader, cluster=HERE, at_ms=AT_MS)
    assert past is not None
    kinds = [(it.kind, it.severity, it.label) for it in live.findings]
    assert [(it.kind, it.severity, it.label) for it in past.findings] == kinds
    assert any(kind == "offline" for kind, _, _ in kinds)
    assert past.headline == live.headline
    told = {(*row.cells, row.key): texts(row) for row in rows_of(past)}
    for row in rows_of(live):
        expected, found = texts(row), told[(*row.cells, row.key)]
        unlike = {name: found[name] for name in expected if expected[name] != found[name]}
        # What followers say of themselves is not kept: sizes are then taken from leaders.
        assert all(text == "n/a" or "≈" in text for text in unlike.values()), unlike


def test_half_a_minute_ago_less_was_read(reader: AggregatesReader) -> None:
    past = snapshot_at(reader, cluster=HERE, at_ms=AT_MS - 30_000)
    assert past is not None
    row = past.cluster.partition(TopicPartition("topic-0", 1))
    assert row is not None
    assert row["high_watermark"] == 10_100 - 30 * 11
    assert row["read_ms"] == AT_MS - 30_000
    assert past.headline.brokers.text == "4/4 brokers"


def test_of_a_share_group_the_past_tells_type_and_which_lag_is_a_bound(tmp_path: Path) -> None:
    """Its broker told one lag; of the other only the most that it can be was known."""
    builder = StoreBuilder(tmp_path)
    of_group = {"cluster": CLUSTER, "group_id": "g", "at_ms": AT_MS}
    of_commit = {**of_group, "topic": "t", "committed_offset": 3, "end_offset": 10, "lag": 7}
    group = {**of_group, "group_type": "share", "state": "Stable", "partitions": 2, "lag": 14}
    builder.write(
        {},
        broker_history=[{"cluster": CLUSTER, "broker": 101, "at_ms": AT_MS}],
        group_history=[group],
        commit_history=[
            {**of_commit, "partition": 0, "told_lag": 7},
            {**of_commit, "partition": 1},
        ],
    )
    past = snapshot_at(AggregatesReader(str(tmp_path)), cluster=HERE, at_ms=AT_MS)
    assert past is not None
    (row,) = group_page(past).rows
    assert (row.cells["type"].text, row.lag.text) == ("share", "≤ 14")
    lags = group_partition_page(past, TableQuery(), group="g").rows
    assert {it.lag.text for it in lags} == {"7", "≤ 7"}


def test_a_time_before_all_history_has_nothing(reader: AggregatesReader) -> None:
    assert snapshot_at(reader, cluster=HERE, at_ms=AT_MS - 61_000) is None
    assert snapshot_at(AggregatesReader("/nowhere"), cluster=HERE, at_ms=AT_MS) is None


@pytest.mark.parametrize(
    ("at_ms", "now_ms", "why"),
    [
        (AT_MS + 5_000, AT_MS, "in the future, 5.0 s from now"),
        (AT_MS + 86_400_000, AT_MS, "in the future, 1 d from now"),
        (AT_MS - 61_000, AT_MS, "before history begins; choose"),
        (AT_MS + 86_400_000, AT_MS + 2 * 86_400_000, "nothing was measured then"),
    ],
)
def test_what_cannot_be_shown_says_why(
    reader: AggregatesReader, at_ms: int, now_ms: int, why: str
) -> None:
    with pytest.raises(NothingKeptError, match=why):
        look_back(reader, cluster=HERE, at_ms=at_ms, now_ms=now_ms)


def test_a_moment_of_history_is_shown_and_a_store_without_any_says_so(
    reader: AggregatesReader, tmp_path: Path
) -> None:
    found = look_back(reader, cluster=HERE, at_ms=AT_MS - 10_000, now_ms=AT_MS)
    assert found.headline.brokers.text == "4/4 brokers"
    with pytest.raises(NothingKeptError, match="no history is kept yet"):
        look_back(AggregatesReader(str(tmp_path / "none")), cluster=HERE, at_ms=AT_MS, now_ms=AT_MS)


def test_where_nothing_is_known_nothing_is_called_well() -> None:
    health = build_snapshot({}, version=0, now_ms=AT_MS).health
    assert (health.tone, "well" in health.text) != (Tone.FINE, True)
    assert health.tone is not Tone.FINE
