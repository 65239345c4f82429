"""What the driver shows before Spark has run a batch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from broker.metrics_schema import (
    BrokerSample,
    CommitSample,
    Envelope,
    GroupSample,
    ReplicaSample,
    Row,
    encode_round,
)
from spark_metrics.decode.record_head import Head, KafkaRecord, read_head
from spark_metrics.job.first_snapshot import first_snapshot, is_whole
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.tables import NOW_TABLES

ROUND_MS = 1_000


def heads_of(broker: int, rows: Sequence[Row], round_ms: int = ROUND_MS) -> list[Head]:
    envelope = Envelope(
        cluster="c", broker=broker, broker_epoch=-1, round_ms=round_ms, interval_ms=1_000
    )
    return [
        read_head(KafkaRecord(partition=0, offset=n, timestamp_ms=round_ms, value=value))
        for n, value in enumerate(encode_round(envelope, rows))
    ]


def broker_row(broker: int, *, fenced: bool = False) -> BrokerSample:
    return BrokerSample(id=broker, host="h", port=1, fenced=fenced, read_ms=ROUND_MS)


def replica(partition: int, *, end: int | None, **further: Any) -> ReplicaSample:
    told = {"leader": 1, "leader_epoch": 4, "replicas": (1, 2), "isr": (1,), "read_ms": 1_100}
    figures = {"log_start_offset": 20, "high_watermark": end, "log_end_offset": end}
    return ReplicaSample(
        topic="t", partition=partition, **{**told, **figures, "size_bytes": 7, **further}
    )


def commit(partition: int, offset: int, read_ms: int) -> CommitSample:
    return CommitSample(
        group_id="g", topic="t", partition=partition, committed_offset=offset, read_ms=read_ms
    )


LEADER = heads_of(
    1,
    [
        broker_row(1),
        broker_row(2),
        broker_row(3, fenced=True),
        BrokerSample(id=4, host="", port=-1, fenced=False, read_ms=ROUND_MS),
        GroupSample(group_id="g", state="Stable", members=1, read_ms=ROUND_MS),
        GroupSample(group_id="idle", state="Empty", members=0, read_ms=ROUND_MS),
        commit(0, 10, 1_050),
        commit(1, 130, 1_050),
        commit(2, 90, 1_200),
        *(replica(number, end=100) for number in range(3)),
    ],
)
FOLLOWER = heads_of(2, [replica(n, end=None, log_start_offset=None) for n in range(3)])


def test_it_waits_for_every_live_broker() -> None:
    assert not is_whole([])
    assert not is_whole(LEADER)
    assert is_whole([*LEADER, *FOLLOWER]), "who is fenced, or has no address, tells nothing"


def test_figures_of_one_reading_are_there_and_the_others_are_not_known(tmp_path: Path) -> None:
    StoreWriter(str(tmp_path)).commit(first_snapshot([*LEADER, *FOLLOWER]))
    now = AggregatesReader(str(tmp_path)).now()
    assert now is not None
    assert {name: table.schema for name, table in now.tables.items()} == NOW_TABLES
    partition, *_ = now.tables["partitions"].to_pylist()
    assert (partition["leader"], partition["replicas"], partition["isr"]) == (1, [1, 2], [1])
    assert (partition["high_watermark"], partition["log_start_offset"]) == (100, 20)
    assert partition["in_bytes_per_s"] is None
    replicas = now.tables["replicas"].sort_by([("partition", "ascending"), ("broker", "ascending")])
    told = [(r["broker"], r["is_leader"], r["is_in_sync"]) for r in replicas.to_pylist()[:2]]
    assert told == [(1, True, True), (2, False, False)]
    commits = {row["partition"]: row for row in now.tables["commits"].to_pylist()}
    assert [commits[n]["lag"] for n in range(3)] == [90, 0, None], "the last end is older"
    assert [commits[n]["lost_records"] for n in range(3)] == [10, 0, None]
    assert {row["status"] for row in commits.values()} == {None}
    groups = {row["group_id"]: row for row in now.tables["groups"].to_pylist()}
    assert (groups["g"]["lag"], groups["g"]["partitions"], groups["idle"]["lag"]) == (None, 3, None)
    brokers = {row["broker"]: row for row in now.tables["brokers"].to_pylist()}
    assert [brokers[n]["leaders"] for n in (1, 2, 3)] == [3, 0, 0]
    assert (brokers[1]["size_bytes"], brokers[3]["is_fenced"]) == (21, True)


def test_a_cluster_without_any_partition_is_shown_too(tmp_path: Path) -> None:
    writer = StoreWriter(str(tmp_path))
    writer.commit(first_snapshot(heads_of(1, [broker_row(1)])))
    assert writer.manifest is not None
    assert writer.manifest.is_provisional
    now = AggregatesReader(str(tmp_path)).now()
    assert now is not None
    assert now.tables["brokers"].num_rows == 1
    assert isinstance(now.tables["partitions"], pa.Table)
