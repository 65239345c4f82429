"""A step's records are cut by buckets of topics, as they are where they can be."""

import re
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from broker.metrics_schema import BUCKETS, CommitSample, Envelope, ReplicaSample, Row, encode_round
from spark_metrics.buckets.bucket_rows import count_rows, cut_by_bucket, read_rows
from spark_metrics.decode.record_head import Head, KafkaRecord, read_head

T0_MS = 1_800_000_000_000
TOPICS, PARTITIONS = 42, 50
LED: dict[str, Any] = {
    **{"leader": 1, "leader_epoch": 1, "replicas": [1], "isr": [1]},
    "read_ms": T0_MS,
}


def rows() -> list[Row]:
    """2,100 partitions, each with a group's commit."""
    made: list[Row] = []
    for topic in range(TOPICS):
        for partition in range(PARTITIONS):
            place: dict[str, Any] = {"topic": f"t-{topic}", "partition": partition}
            made += [
                ReplicaSample(**place, **LED, high_watermark=topic, log_end_offset=topic),
                CommitSample(group_id="g", **place, committed_offset=topic, read_ms=T0_MS),
            ]
    return made


def records(*, of: list[Row], first: int = 0, round_ms: int = T0_MS) -> list[tuple[int, Head]]:
    whole = {"cluster": "c", "broker": 1, "broker_epoch": 1, "interval_ms": 1_000}
    values = encode_round(Envelope(**whole, round_ms=round_ms), of)  # type: ignore[arg-type]
    return [(first + number, head_of(value)) for number, value in enumerate(values)]


def head_of(value: bytes) -> Head:
    return read_head(KafkaRecord(partition=0, offset=0, timestamp_ms=T0_MS, value=value))


def told(some: pa.Table) -> list[tuple[str, int]]:
    columns = (some[name].to_pylist() for name in ("topic", "partition"))
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("has_small_record", [False, True])
@pytest.mark.parametrize("buckets", [1, 2, 8, BUCKETS])
def test_shares_are_the_whole_and_no_partition_is_in_two(
    buckets: int, has_small_record: bool
) -> None:
    every = records(of=rows())
    assert all(head.bucket_of is not None for _, head in every[1:])
    if has_small_record:
        every += records(of=rows()[: 3 * PARTITIONS], first=len(every), round_ms=T0_MS + 1)
    cut = cut_by_bucket(every, buckets)
    found = [it.take() for it in cut]
    whole, _ = read_rows(every)
    for kind in ("replicas", "commits"):
        parts = [told(getattr(it, kind)) for it in found]
        assert sorted(chain(*parts)) == told(getattr(whole, kind))
        topics = [{topic for topic, _ in part} for part in parts]
        assert sum(map(len, topics)) == TOPICS
    assert not any(it.bad for it in cut)


def test_rows_are_let_go_of_once_they_are_taken() -> None:
    (whole,) = cut_by_bucket(records(of=rows()[:4]), 1)
    assert whole.take().commits.num_rows == 2
    assert whole.take().commits.num_rows == 0


def test_a_record_that_claims_another_bucket_is_bad() -> None:
    every = records(of=rows())
    number, head = every[3]
    bucket, buckets = head.bucket_of or (-1, -1)
    lie = f'"bucket_of":[{bucket ^ 1},{buckets}]'.encode()
    every[3] = (number, head_of(re.sub(rb'"bucket_of":[^]]+.', lie, head.record.value)))
    cut = cut_by_bucket(every, 8)
    found = [it.take() for it in cut]
    assert [number for it in cut for number in it.bad] == [number]
    lost = sum((head.rows or {}).values())
    assert sum(it.replicas.num_rows + it.commits.num_rows for it in found) == len(rows()) - lost


def test_rounds_of_a_source_are_counted_once() -> None:
    every = records(of=rows()[:100]) + records(of=rows()[:80], first=9, round_ms=T0_MS + 1)
    assert count_rows(every) == 100
    assert count_rows([]) == 0
