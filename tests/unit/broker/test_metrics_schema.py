"""The metrics window: what goes in comes out, and its columns name every field."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from broker import metrics_schema as schema
from broker.metrics.columns import LISTS, NESTED, NUMBERS, TEXTS
from spark_metrics.decode.record_head import KafkaRecord, read_head
from spark_metrics.decode.record_rows import parse_rows

ENVELOPE = schema.Envelope(
    cluster="c", broker=101, broker_epoch=7, round_ms=1_000, interval_ms=1_000
)
LARGE = schema.PACKED_BUCKETS_MIN * schema.ROWS_PER_RECORD_MAX
"""Rows of a round whose columns are packed."""


def _replica(partition: int) -> schema.ReplicaSample:
    return schema.ReplicaSample(
        topic="orders",
        partition=partition,
        leader=101,
        leader_epoch=3,
        replicas=[101, 102],
        isr=[101],
        log_start_offset=0,
        high_watermark=5,
        log_end_offset=9,
        read_ms=1_001,
        segment_bytes=[10, 20],
        segments=2,
    )


def test_a_round_is_cut_into_bounded_parts_and_reads_back() -> None:
    rows: list[schema.Row] = [_replica(n) for n in range(schema.ROWS_PER_RECORD_MAX + 1)]
    rows.append(
        schema.GroupSample(group_id="g", state="Stable", members=2, read_ms=1_002, protocol="range")
    )
    records = [schema.decode_record(value) for value in schema.encode_round(ENVELOPE, rows)]
    assert [(r.envelope.part, r.envelope.parts) for r in records] == [(0, 2), (1, 2)]
    assert [row for record in records for row in (*record.replicas, *record.groups)] == rows


def test_an_empty_round_still_says_that_the_source_lives() -> None:
    (value,) = schema.encode_round(ENVELOPE, [])
    assert schema.decode_record(value).envelope == ENVELOPE


def test_unknown_is_absent_and_never_zero() -> None:
    (value,) = schema.encode_round(ENVELOPE, [_replica(0)])
    columns = json.loads(value.split(b"\n")[1])["replicas_columns"]
    assert "size_bytes" not in columns
    assert "bytes_in" not in columns
    (row,) = schema.decode_record(value).replicas
    assert row.size_bytes is None


def test_keys_of_a_newer_version_are_ignored() -> None:
    (value,) = schema.encode_round(ENVELOPE, [_replica(0)])
    head, body = map(json.loads, value.split(b"\n"))
    head |= {"v": 3, "mood": "fine"}
    body["replicas_columns"]["temperature"] = [21]
    newer = "\n".join(map(json.dumps, (head, body))).encode()
    assert list(schema.decode_record(newer).replicas) == [_replica(0)]


def test_rows_that_repeat_nothing_read_back() -> None:
    again = schema.UnchangedReplica(topic="orders", partition=1, read_ms=1_005, since_ms=900)
    kept = schema.UnchangedCommit(
        group_id="g", topic="orders", partition=1, read_ms=1_006, since_ms=901
    )
    values = schema.encode_round(ENVELOPE, [_replica(0), again, kept])
    (record,) = map(schema.decode_record, values)
    assert list(record.replicas) == [_replica(0)]
    assert list(record.unchanged) == [again, kept]


def test_a_large_round_is_cut_by_kind_and_bucket() -> None:
    rows: list[schema.Row] = [replace(_replica(n), topic=f"t{n % 40}") for n in range(LARGE)]
    rows.append(schema.GroupSample(group_id="g", state="Stable", members=1, read_ms=1))
    first, *records = map(schema.decode_record, schema.encode_round(ENVELOPE, rows))
    assert (first.envelope.bucket_of, len(first.groups), len(first.replicas)) == (None, 1, 0)
    for record in records:
        bucket, buckets = record.envelope.bucket_of or (-1, -1)
        assert buckets == 8
        assert {_bucket(row) % buckets for row in record.replicas} == {bucket}
    told = [(row.topic, row.partition) for record in records for row in record.replicas]
    assert sorted(told) == sorted((f"t{n % 40}", n) for n in range(len(rows) - 1))


@pytest.mark.parametrize(("count", "buckets"), [(1_000, 2), (1_999, 2), (3_000, 4), (3_999, 4)])
def test_a_round_of_some_records_is_cut_by_bucket_alone_and_any_tool_reads_it(
    count: int, buckets: int
) -> None:
    rows: list[schema.Row] = [
        schema.UnchangedReplica(topic=f"t{n % 40}", partition=n, read_ms=1_000, since_ms=900)
        if n % 3
        else replace(_replica(n), topic=f"t{n % 40}")
        for n in range(count)
    ]
    values = schema.encode_round(ENVELOPE, rows)
    first, *records = map(schema.decode_record, values)
    assert (first.envelope.bucket_of, len(first.replicas)) == (None, 0)
    assert all(json.loads(value.split(b"\n")[0])["v"] == 2 for value in values)
    assert len(records) <= count // schema.ROWS_PER_RECORD_MAX + buckets
    for record in records:
        found = {_bucket(row) % buckets for row in (*record.replicas, *record.unchanged)}
        assert record.envelope.bucket_of == [found.pop(), buckets]
        assert not found
    assert sum(len(it.replicas) + len(it.unchanged) for it in records) == count


def test_a_small_round_is_not_cut_by_bucket() -> None:
    values = schema.encode_round(ENVELOPE, [_replica(n) for n in range(999)])
    assert [schema.decode_record(value).envelope.bucket_of for value in values] == [None, None]


def _bucket(row: Any) -> int:
    return schema.bucket_of(ENVELOPE.cluster, row.topic, row.partition)


def test_each_record_of_a_large_round_tells_how_many_there_are_of_each_bucket() -> None:
    rows: list[schema.Row] = [_replica(n % 100) for n in range(LARGE)]
    values = schema.encode_round(ENVELOPE, rows, [replace(_replica(300), leader=-1)])
    records = [schema.decode_record(value) for value in values]
    for record in records:
        assert sum(record.envelope.parts_of or ()) == record.envelope.parts - 1
    places = [it.envelope.bucket_of[0] for it in records if it.envelope.bucket_of]
    assert places == sorted(places)
    assert [places.count(n) for n in range(8)] == list(records[0].envelope.parts_of or ())
    assert sorted(records[0].envelope.parts_of or ()) == [0] * 6 + [1, 8]


def test_a_huge_topic_is_in_all_buckets_evenly() -> None:
    rows: list[schema.Row] = [_replica(n) for n in range(40_000)]
    records = [schema.decode_record(value) for value in schema.encode_round(ENVELOPE, rows)]
    found = Counter(_bucket(row) for record in records for row in record.replicas)
    assert set(found) == set(range(schema.BUCKETS))
    assert {len(it.envelope.bucket_of or ()) for it in records[1:]} == {2}
    assert max(found.values()) - min(found.values()) <= schema.RANGE_PARTITIONS


def _large(rows: Sequence[schema.Row]) -> bytes:
    """A record of a round that is large, whose columns are packed."""
    return schema.encode_part(replace(ENVELOPE, parts_of=[0] * schema.PACKED_BUCKETS_MIN), rows)


def test_the_columns_of_a_large_round_are_packed_and_read_back() -> None:
    wide = replace(
        _replica(1), high_watermark=1 << 40, log_end_offset=None, segment_bytes=None, isr=[102]
    )
    rows = [_replica(0), wide, replace(_replica(2), topic="clicks", log_points=[5, 1_000, 7, -1])]
    kept = schema.UnchangedReplica(topic="orders", partition=3, read_ms=1_005, since_ms=900)
    commits = [
        schema.CommitSample(
            group_id=f"g{n}", topic="orders", partition=n, committed_offset=-n, read_ms=1_000 + n
        )
        for n in range(300)
    ]
    value = _large([*rows, kept, *commits])
    head, layout, packed = value.split(b"\n", 2)
    assert (json.loads(head)["v"], json.loads(head)["packed"]) == (3, True)
    assert sum(it["bytes"] for it in json.loads(layout).values()) == len(packed)
    record = schema.decode_record(value)
    assert list(record.replicas) == rows
    assert list(record.unchanged) == [kept]
    assert list(record.commits) == commits
    assert len(value) < len(schema.encode_part(ENVELOPE, [*rows, kept, *commits]))


def test_columns_that_are_all_the_same_take_no_bytes() -> None:
    (layout,) = json.loads(_large([_replica(7)] * 20).split(b"\n")[1]).values()
    sizes = {name: size for name, size, *_ in layout["columns"]}
    assert {name for name, size in sizes.items() if size} == {"segment_bytes[]"}
    assert layout["bytes"] == 40


@pytest.mark.parametrize("cut", [1, 40])
def test_packed_columns_that_are_cut_off_are_refused(cut: int) -> None:
    with pytest.raises(schema.SampleDecodeError):
        schema.decode_record(_large([_replica(n) for n in range(60)])[:-cut])


def test_an_object_per_row_is_no_sample() -> None:
    (value,) = schema.encode_round(ENVELOPE, [])
    with pytest.raises(schema.SampleDecodeError):
        schema.decode_record(value.replace(b'"v":2', b'"v":1'))


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b"{}", b'{"v":2}', b"17"])
def test_what_is_not_a_sample_is_refused(value: bytes) -> None:
    with pytest.raises(schema.SampleDecodeError):
        schema.decode_record(value)


def test_packed_columns_of_an_absurd_size_are_refused() -> None:
    whole = b'"cluster":"c","broker":1,"broker_epoch":1,"round_ms":1,"interval_ms":1'
    head = b'{"v":3,"packed":true,' + whole + b"}"
    columns = b'{"rows":%d,"bytes":0,"columns":[["partition",0,0]]}' % 10**30
    with pytest.raises(schema.SampleDecodeError):
        schema.decode_record(head + b'\n{"replicas_columns":' + columns + b"}\n")


@pytest.mark.parametrize(
    ("kind", "row_type"), [("replicas", schema.ReplicaSample), ("commits", schema.CommitSample)]
)
def test_the_columns_name_every_field(kind: str, row_type: type) -> None:
    lists = (*LISTS, *NESTED) if kind == "replicas" else ()
    named = {*NUMBERS[kind], *TEXTS[kind], *lists} - {"since_ms"}
    assert named == {field.name for field in fields(row_type)}


@pytest.mark.parametrize("count", [3, 1_000, LARGE])
def test_orphans_have_records_of_their_own_in_a_round_that_says_so(count: int) -> None:
    rows: list[schema.Row] = [replace(_replica(n), topic=f"t{n % 9}") for n in range(count)]
    orphans = [replace(_replica(n), topic=f"gone{n}", leader=-1) for n in range(5)]
    values = schema.encode_round(ENVELOPE, rows, orphans)
    records = [schema.decode_record(value) for value in values]
    assert all(record.envelope.tells_orphans for record in records)
    assert [record.envelope.part for record in records] == list(range(len(records)))
    assert {record.envelope.parts for record in records} == {len(records)}
    told = [row for it in records if it.envelope.of_orphans for row in it.replicas]
    assert sorted(told, key=lambda row: row.topic) == orphans
    assert sum(len(record.replicas) for record in records) == count + len(orphans)
    heads = [json.loads(value.split(b"\n")[0]) for value in values]
    assert all(("bucket_of" in it) is (count > 3) for it in heads if it.get("replicas", 0) > 1)


def test_a_round_of_who_knows_no_metadata_says_nothing_of_orphans() -> None:
    (value,) = schema.encode_round(ENVELOPE, [_replica(0)])
    assert b"orphans" not in value
    (value,) = schema.encode_round(ENVELOPE, [_replica(0)], [])
    assert schema.decode_record(value).envelope.tells_orphans


@pytest.mark.parametrize("count", [1, LARGE])
def test_an_isr_that_is_empty_is_told_as_such(count: int) -> None:
    orphans = [replace(_replica(n), leader=-1, isr=[]) for n in range(count)]
    values = schema.encode_round(ENVELOPE, [], orphans)
    rows = [row for value in values for row in schema.decode_record(value).replicas]
    assert [tuple(row.isr) for row in rows] == [()] * count
    heads = [
        (n, read_head(KafkaRecord(partition=0, offset=n, timestamp_ms=1_000, value=value)))
        for n, value in enumerate(values)
    ]
    parsed = parse_rows("replicas", heads)
    assert parsed.bad_numbers == frozenset()
    assert parsed.rows["isr"].to_pylist() == [[]] * count
