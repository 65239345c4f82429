"""A task reads only the records that may have rows of its bucket, and knows when it has all."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.metrics_schema import Envelope, ReplicaSample, Row, bucket_of, encode_round
from spark_metrics.decode.record_head import Head, KafkaRecord, read_head
from tests.unit.spark_metrics.buckets.tasks import T0_MS, Tasks

PER_TOPIC = 50
GONE = range(8)
"""Topics that a later round lacks."""


def heads(rows: int, *, at_ms: int = 0, without: Sequence[int] = ()) -> list[Head]:
    """A round of so many partitions, one replica each."""
    whole: dict[str, Any] = {"cluster": "c", "broker": 1, "broker_epoch": 1, "interval_ms": 1_000}
    led: dict[str, Any] = {"leader": 1, "leader_epoch": 1, "replicas": [1], "isr": [1]}
    made: list[Row] = [
        ReplicaSample(
            topic=f"t-{n // PER_TOPIC}",
            partition=n % PER_TOPIC,
            **led,
            high_watermark=n,
            log_end_offset=n,
            read_ms=T0_MS,
        )
        for n in range(rows)
        if n // PER_TOPIC not in without
    ]
    envelope = Envelope(**whole, round_ms=T0_MS + at_ms)
    return [
        read_head(KafkaRecord(partition=0, offset=at_ms + n, timestamp_ms=T0_MS, value=value))
        for n, value in enumerate(encode_round(envelope, made))
    ]


@pytest.mark.parametrize(
    ("rows", "tasks", "readers"),
    [
        (999, 4, 4),
        *((1_000, 2, 1), (1_000, 4, 2), (1_000, 8, 4)),
        *((3_000, 2, 1), (3_000, 4, 1), (3_000, 8, 2)),
        *((4_000, 8, 1), (4_000, 1, 1)),
    ],
)
def test_a_row_is_read_by_as_few_tasks_as_its_round_allows(
    rows: int, tasks: int, readers: int
) -> None:
    told = [(len(it.buckets(tasks)), (it.rows or {})["replicas"]) for it in heads(rows)]
    assert sum(count * replicas for count, replicas in told) == readers * rows


def test_brokers_and_groups_count_in_records_that_every_task_reads_alone() -> None:
    first, second, *_ = (it.record for it in heads(1_000))
    told = b'"brokers":[{"id":1,"host":"h","port":1,"fenced":false,"read_ms":5}],"groups":'
    told += b'[{"group_id":"g","state":"Empty","members":0,"read_ms":5}],'
    for record, is_of_all in ((first, True), (second, False)):
        value = record.value.replace(b'{"v":2,', b'{"v":2,' + told, 1)
        found = read_head(replace(record, value=value))
        assert (len(found.brokers), len(found.groups)) == (is_of_all, is_of_all)
        assert found.part is not None
        assert found.part.has_brokers is is_of_all
        assert not found.is_bad
        assert not read_head(replace(record, value=value), with_groups=False).groups


@pytest.mark.parametrize("rows", [900, 1_500, 3_000, 5_000])
@pytest.mark.parametrize("count", [1, 4])
def test_a_task_knows_what_is_gone_once_all_parts_that_concern_it_have_come(
    tmp_path: Path, rows: int, count: int
) -> None:
    tasks = Tasks(tmp_path, count)
    before = tasks.batch(heads(rows))
    assert sum(it.folded.state_rows for it in before) == rows
    told = sorted(head.record.offset for it in before for head in it.heads)
    assert told == list(range(len(told))), "each head comes back once"
    *parts, late = heads(rows, at_ms=1_000, without=GONE)
    half, whole = tasks.batch(parts), tasks.batch([late])
    for bucket in range(count):
        had, has_half, has_whole = (it[bucket].folded.state_rows for it in (before, half, whole))
        gone = sum(bucket_of("c", f"t-{it}", 0) % count == bucket for it in GONE) * PER_TOPIC
        assert has_half == (had if bucket in late.buckets(count) else had - gone)
        assert has_whole == had - gone
    assert not any(it.bad for it in (*before, *half, *whole))
