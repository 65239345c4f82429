"""Rows of records: what Arrow reads, what goes row by row, and which row counts when two do."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from broker.metrics_schema import (
    NO_COMMIT,
    PACKED_BUCKETS_MIN,
    CommitSample,
    Envelope,
    ReplicaSample,
    UnchangedReplica,
    bucket_of,
    encode_part,
    encode_round,
)
from spark_metrics.decode.record_head import Head, KafkaRecord, read_head
from spark_metrics.decode.record_rows import Parsed, cut_rows, parse_rows
from tests.support.phrases import lacking

T0_MS = 1_800_000_000_000


def head(value: bytes, offset: int = 0) -> Head:
    return read_head(KafkaRecord(partition=0, offset=offset, timestamp_ms=T0_MS, value=value))


def replica(end: int, at_ms: int = 5, **further: Any) -> ReplicaSample:
    fields: dict[str, Any] = {
        **{"topic": "t", "partition": 0, "leader": 1, "leader_epoch": 3, "replicas": (1, 2)},
        **{"isr": (1,), "high_watermark": end, "log_end_offset": end, "read_ms": T0_MS + at_ms},
    }
    return ReplicaSample(**{**fields, **further})


def round_of(*rows: Any, broker: int = 1, at_ms: int = 0) -> bytes:
    envelope = Envelope(
        cluster="c", broker=broker, broker_epoch=7, round_ms=T0_MS + at_ms, interval_ms=1_000
    )
    (value,) = encode_round(envelope, rows)
    return value


def parsed(*values: bytes, kind: str = "replicas") -> Parsed:
    return parse_rows(kind, [(number, head(value)) for number, value in enumerate(values)])


def test_columns_of_several_records_are_laid_end_to_end() -> None:
    found = parsed(
        round_of(replica(10), replica(11, partition=1, segment_bytes=(5, 6))),
        round_of(replica(20, topic="u", isr=(1, 2)), broker=2),
    )
    rows = found.rows.to_pylist()
    assert [(row["topic"], row["partition"], row["source"]) for row in rows] == [
        ("t", 0, 1),
        ("t", 1, 1),
        ("u", 0, 2),
    ]
    assert [row["high_watermark"] for row in rows] == [10, 11, 20]
    assert [row["isr"] for row in rows] == [[1], [1], [1, 2]]
    assert [row["segment_bytes"] for row in rows] == [None, [5, 6], None]
    assert {row["read_ms"] for row in rows} == {T0_MS + 5}
    assert [row["again_read_ms"] for row in rows] == [None, None, None]
    assert found.bad_numbers == frozenset()


def test_of_two_rows_of_one_replica_the_newest_counts() -> None:
    same: dict[str, Any] = {"topic": "t", "partition": 0, "since_ms": T0_MS + 1_005}
    found = parsed(
        round_of(replica(30, at_ms=1_005), at_ms=1_000),
        round_of(replica(10)),
        round_of(UnchangedReplica(**same, read_ms=T0_MS + 2_005), at_ms=2_000),
        round_of(UnchangedReplica(**same, read_ms=T0_MS + 1_905), at_ms=1_900),
        round_of(replica(7, topic="other")),
    )
    rows = {row["topic"]: row for row in found.rows.to_pylist()}
    assert len(found.rows) == 2
    assert (rows["t"]["high_watermark"], rows["t"]["read_ms"]) == (30, T0_MS + 1_005)
    assert (rows["t"]["again_read_ms"], rows["t"]["again_since_ms"]) == (
        T0_MS + 2_005,
        T0_MS + 1_005,
    )
    assert (rows["other"]["read_ms"], rows["other"]["again_read_ms"]) == (T0_MS + 5, None)


def test_an_unchanged_row_has_no_figures() -> None:
    row = UnchangedReplica(topic="t", partition=4, read_ms=T0_MS + 9, since_ms=T0_MS)
    (found,) = parsed(round_of(row)).rows.to_pylist()
    assert (found["partition"], found["read_ms"], found["high_watermark"]) == (4, None, None)
    assert (found["again_read_ms"], found["again_since_ms"]) == (T0_MS + 9, T0_MS)


def test_bad_rows_are_left_out_and_their_records_named() -> None:
    hole = round_of(replica(7), replica(8, partition=1)).replace(b"[7,8]", b"[7,null]")
    future = round_of(replica(9, topic="late", read_ms=T0_MS + 90_000_000))
    text = round_of(replica(3, topic="word")).replace(b'"partition":[0]', b'"partition":["x"]')
    place = round_of(replica(4, topic="place")).replace(b'"topic":[0]', b'"topic":[1]')
    broken = round_of(replica(5)).replace(b'"replicas_columns":{', b'"replicas_columns":{{')
    good = round_of(replica(6, topic="good"))
    found = parsed(hole, future, text, place, broken, good)
    assert [(row["topic"], row["high_watermark"]) for row in found.rows.to_pylist()] == [
        ("t", 7),
        ("good", 6),
    ]
    assert found.bad_numbers == {0, 1, 2, 3, 4}


def test_a_row_that_is_left_out_is_named_with_the_reason() -> None:
    commit: dict[str, Any] = {"topic": "t", "committed_offset": 5, "read_ms": T0_MS}
    rows = [
        CommitSample(**commit, group_id="good", partition=0),
        CommitSample(**{**commit, "committed_offset": -7}, group_id="odd", partition=3),
        CommitSample(**{**commit, "read_ms": T0_MS + 90_000_000}, group_id="late", partition=4),
    ]
    found = parsed(round_of(*rows), kind="commits")
    assert [row["group_id"] for row in found.rows.to_pylist()] == ["good"]
    (named,) = found.named.values()
    first, second = named
    assert not lacking(first, "group odd", "t-3", "committed_offset -7", "-1")
    assert not lacking(second, "group late", "t-4", "another time")
    odd = round_of(replica(7, partition=2, size_bytes=5)).replace(b"[5]", b"[-5]")
    (named,) = parsed(odd).named.values()
    assert not lacking(named[0], "broker 1", "t-2", "size_bytes -5")


def packed(*rows: Any, broker: int = 1, at_ms: int = 0) -> bytes:
    """The same as of a large round."""
    envelope = Envelope(
        cluster="c", broker=broker, broker_epoch=7, round_ms=T0_MS + at_ms, interval_ms=1_000
    )
    return encode_part(replace(envelope, parts_of=(0,) * PACKED_BUCKETS_MIN), rows)


def test_packed_columns_say_what_columns_of_text_say() -> None:
    rounds: list[list[Any]] = [
        [
            *(
                replica(100 + n, partition=n, segment_bytes=(5, n) if n % 2 else None)
                for n in range(9)
            ),
            replica(1 << 50, partition=9, log_end_offset=None, leader=2, log_points=(4, T0_MS)),
            UnchangedReplica(topic="t", partition=4, read_ms=T0_MS + 9, since_ms=T0_MS + 5),
        ],
        [replica(20, topic="u", isr=(1, 2), retention_ms=-1)],
    ]
    text, same = (
        parsed(*(make(*rows, broker=n + 1, at_ms=n) for n, rows in enumerate(rounds)))
        for make in (round_of, packed)
    )
    assert same.rows.to_pylist() == text.rows.to_pylist()
    assert same.bad_numbers == text.bad_numbers == frozenset()
    commits = [
        CommitSample(
            group_id=f"g{n}",
            topic="é\n",
            partition=n,
            committed_offset=n,
            read_ms=T0_MS + 3,
            member_id="m" if n % 3 else None,
        )
        for n in range(50)
    ]
    text, same = (parsed(make(*commits), kind="commits") for make in (round_of, packed))
    assert same.rows.to_pylist() == text.rows.to_pylist()
    assert len(same.rows) == 50


def layout_with(value: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The record with another layout of its replicas."""
    head_line, line, columns = value.split(b"\n", 2)
    layouts = json.loads(line)
    change(layouts["replicas_columns"])
    return b"\n".join((head_line, json.dumps(layouts).encode(), columns))


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it.update(bytes=it["bytes"] + 1),
        lambda it: it.update(bytes="3"),
        lambda it: it.update(rows=1 << 40),
        lambda it: it.update(rows=0),
        lambda it: it.update(topics=[7]),
        lambda it: it.update(topics=[]),
        lambda it: it.update(lists=[["x"]]),
        lambda it: it.pop("columns"),
        lambda it: it["columns"].append(["leader", 3, 0]),
        lambda it: it["columns"].append(["leader", 8, 0]),
        lambda it: it["columns"].append(["leader", 0, 1.5]),
        lambda it: it["columns"].append(["leader", 0, 1 << 80]),
        lambda it: it["columns"].append(["topic", 0, 9]),
        lambda it: it["columns"].append(["segment_bytes[]", 0, 5]),
        lambda it: it["columns"].extend([["log_points", 0, 1 << 40], ["log_points[]", 0, 5]]),
        lambda it: it["columns"].append(7),
    ],
)
def test_a_packed_record_that_is_spoilt_costs_its_own_rows(change: Any) -> None:
    rows = [replica(n, partition=n) for n in range(4)]
    good = packed(replica(6, topic="good"))
    found = parsed(layout_with(packed(*rows), change), good, packed(*rows)[:-1])
    assert [row["topic"] for row in found.rows.to_pylist()] == ["good"]
    assert found.bad_numbers == {0, 2}


def test_a_commit_that_is_not_there_has_an_owner_or_no_row() -> None:
    def commit(partition: int, offset: int, member_id: str | None) -> CommitSample:
        return CommitSample(
            group_id="g",
            topic="t",
            partition=partition,
            committed_offset=offset,
            read_ms=T0_MS,
            member_id=member_id,
        )

    rows = [commit(0, 5, None), commit(1, NO_COMMIT, "m"), commit(2, NO_COMMIT, None)]
    found = parsed(round_of(*rows), kind="commits")
    told = found.rows.select(["partition", "committed_offset", "member_id"]).to_pylist()
    assert [tuple(row.values()) for row in told] == [(0, 5, None), (1, None, "m")]
    assert found.bad_numbers == frozenset()


def test_rows_are_cut_by_the_bucket_of_their_partition() -> None:
    place: dict[str, Any] = {"group_id": "g", "read_ms": T0_MS}
    commits = [
        CommitSample(**place, topic=f"t{n % 8}", partition=99 * n, committed_offset=n)
        for n in range(40)
    ]
    cut = cut_rows(parsed(round_of(*commits), kind="commits").rows, 4)
    for bucket, rows in enumerate(cut):
        found = rows.select(["cluster", "topic", "partition"]).to_pylist()
        assert {bucket_of(*it.values()) % 4 for it in found} == {bucket}
    assert len(pa.concat_tables(cut)) == 40
