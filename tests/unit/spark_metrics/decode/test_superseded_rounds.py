"""Of a backlog only the newest complete round of a source is read, unless it refers to others."""

from dataclasses import replace
from typing import Any

import pytest

from broker.metrics_schema import (
    Envelope,
    ReplicaSample,
    Row,
    UnchangedReplica,
    encode_part,
    encode_round,
)
from spark_metrics.decode.record_head import Head, KafkaRecord, read_head
from spark_metrics.decode.record_rows import parse_rows
from spark_metrics.decode.superseded_rounds import newest_rounds

T0_MS = 1_800_000_000_000
MANY = 600
"""Partitions: two records a round."""


def envelope(at_ms: int, broker: int) -> Envelope:
    return Envelope(
        cluster="c", broker=broker, broker_epoch=7, round_ms=T0_MS + at_ms, interval_ms=1_000
    )


def row(partition: int, end: int, at_ms: int) -> ReplicaSample:
    return ReplicaSample(
        topic="t",
        partition=partition,
        leader=1,
        leader_epoch=3,
        replicas=(1,),
        isr=(1,),
        high_watermark=end,
        log_end_offset=end,
        read_ms=T0_MS + at_ms,
    )


def full(at_ms: int, broker: int = 1) -> list[bytes]:
    rows: list[Row] = [row(number, at_ms, at_ms) for number in range(MANY)]
    return encode_round(envelope(at_ms, broker), rows)


def unchanged(at_ms: int) -> list[bytes]:
    """A round in which one partition only repeats what it was."""
    rows: list[Row] = [row(number, at_ms, at_ms) for number in range(1, MANY)]
    kept = UnchangedReplica(topic="t", partition=0, read_ms=T0_MS + at_ms, since_ms=T0_MS)
    return encode_round(envelope(at_ms, 1), [*rows, kept])


def packed(at_ms: int) -> list[bytes]:
    rows = [row(number, at_ms, at_ms) for number in range(MANY)]
    whole = replace(envelope(at_ms, 1), parts=8, parts_of=(1,) * 8)
    return [encode_part(replace(whole, part=n), rows[n * 75 : n * 75 + 75]) for n in range(8)]


def step(*values: bytes) -> list[tuple[int, Head]]:
    records = (
        KafkaRecord(partition=0, offset=number, timestamp_ms=T0_MS, value=value)
        for number, value in enumerate(values)
    )
    return [(number, read_head(record)) for number, record in enumerate(records)]


def read(heads: list[tuple[int, Head]]) -> list[int]:
    """Numbers of the records whose rows are read."""
    return [number for number, head in heads if any((head.rows or {}).values())]


def told(heads: list[tuple[int, Head]]) -> list[dict[str, Any]]:
    rows = parse_rows("replicas", heads).rows.to_pylist()
    return sorted(rows, key=lambda row: (row["source"], row["partition"]))


@pytest.mark.parametrize("make", [full, packed])
def test_what_a_newer_complete_round_repeats_is_not_read(make: Any) -> None:
    old, new = make(0), make(1_000)
    whole = step(*old, *new, *full(0, broker=2))
    found = newest_rounds(whole)
    assert read(found) == [n for n in range(len(whole)) if n >= len(old)]
    assert [head.part for _, head in found] == [head.part for _, head in whole]
    assert told(found) == told(whole)


def test_half_a_round_repeats_nothing_for_sure() -> None:
    first, second, third = full(0), full(1_000), full(2_000)[:1]
    assert read(newest_rounds(step(*first, *second[:1]))) == [0, 1, 2]
    assert read(newest_rounds(step(*first, *second, *third))) == [2, 3, 4]


def test_rows_that_refer_to_earlier_ones_need_them() -> None:
    assert read(newest_rounds(step(*full(0), *unchanged(1_000)))) == [0, 1, 2, 3]
    assert read(newest_rounds(step(*full(0), *full(1_000), *unchanged(2_000)[1:]))) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_what_is_no_sample_stays() -> None:
    found = newest_rounds(step(b"not json", *full(0), *full(1_000)))
    assert found[0][1].is_bad
    assert read(found) == [3, 4]


def test_records_that_are_not_read_count_as_bad_where_they_could_not_be() -> None:
    old, new = packed(0), packed(1_000)
    head, layout, columns = old[2].split(b"\n", 2)
    old[2] = b"\n".join((head, layout, columns[:-1]))
    old[5] = old[5].replace(b"replicas_columns", b"replicas_colvmns")
    old[6] = old[6].replace(b'\n{"replicas', b"\n{replicas")
    found = newest_rounds(step(*old, *new))
    assert read(found) == [*range(8, 16)]
    assert [number for number, head in found if head.is_bad] == [2, 5, 6]
