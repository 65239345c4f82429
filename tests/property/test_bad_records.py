"""No record of the metrics topic, however mangled, stops the job or changes what others say."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.metrics_schema import (
    PACKED_BUCKETS_MIN,
    BrokerSample,
    CommitSample,
    Envelope,
    GroupSample,
    ReplicaSample,
    encode_part,
)
from spark_metrics.decode.record_head import (
    Head,
    KafkaRecord,
    bad_value,
    cut_steps,
    read_head,
    seen_of,
    set_right,
)
from spark_metrics.decode.record_rows import parse_rows
from spark_metrics.decode.superseded_rounds import newest_rounds
from spark_metrics.job.first_snapshot import first_snapshot
from spark_metrics.state.job_state import decode_job_state, encode_job_state
from spark_metrics.state.source_clocks import observe_clocks
from tests.support.cases import examples

T0_MS = 1_800_000_000_000
NUMBERS = (-1, 0, 1, 2**31, 2**32, 2**32 + 5, 2**43, 2**61, 2**62, 2**63 - 1, -(2**63), 10**30)
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    None,
    True,
    1.5,
    float("nan"),
    "x",
    "\ud800",
    [],
    {},
    [[1] * 9],
    [None],
)


def record(
    cluster: str, version: int, *, partitions: int = 3, replicas: tuple[int, ...] = (1, 2)
) -> bytes:
    """A round of one record in each of the three ways in which sources write them."""
    envelope = Envelope(
        cluster=cluster, broker=1, broker_epoch=7, round_ms=T0_MS, interval_ms=1_000
    )
    commits = [
        CommitSample(
            group_id="g", topic="t", partition=it, committed_offset=5, read_ms=T0_MS, member_id="m"
        )
        for it in range(partitions)
    ]
    rows: list[Any] = [
        *(
            ReplicaSample(
                topic="t", partition=it, leader=1, leader_epoch=3, replicas=replicas, isr=(1,),
                high_watermark=10, log_end_offset=11, size_bytes=100 * it, segment_bytes=(5, it),
                log_points=(1, T0_MS, 2, T0_MS + it), retention_ms=2**63 - 1, read_ms=T0_MS + it,
            )
            for it in range(partitions)
        ),
        *commits,
        BrokerSample(id=1, host="h", port=9_092, fenced=False, read_ms=T0_MS, rack="r", epoch=7),
        GroupSample(group_id="g", state="Stable", members=1, read_ms=T0_MS),
    ]  # fmt: skip
    if version == 3:
        return encode_part(replace(envelope, parts_of=(0,) * PACKED_BUCKETS_MIN), rows)
    return encode_part(envelope, rows)


def heads_of(*values: bytes) -> list[Head]:
    return [
        read_head(KafkaRecord(partition=0, offset=n, timestamp_ms=T0_MS, value=value))
        for n, value in enumerate(values)
    ]


def told(*values: bytes) -> tuple[dict[str, list[dict[str, Any]]], set[int]]:
    """All that the driver makes of records, on the way that a batch takes; and which are bad."""
    heads = heads_of(*values)
    clocks = observe_clocks({}, seen_of(heads), seen_ms=T0_MS, reached_ms=None)
    right = set_right(heads, clocks)
    bad = {number for number, head in enumerate(right) if head.is_bad}
    for step in map(newest_rounds, cut_steps(right)):
        bad |= {number for number, head in step if head.is_bad}
        for kind in ("replicas", "commits"):
            bad |= parse_rows(kind, step).bad_numbers
    for number in bad:
        json.dumps(bad_value(right[number]))
    commit = first_snapshot(right)
    decode_job_state(json.loads(json.dumps(encode_job_state(decode_job_state(commit.memory)))))
    return {name: table.to_pylist() for name, table in commit.now.items()}, bad


def of_cluster(tables: dict[str, list[dict[str, Any]]], cluster: str) -> dict[str, Any]:
    return {
        name: sorted((row for row in rows if row.get("cluster") == cluster), key=str)
        for name, rows in tables.items()
    }


ALONE = {version: of_cluster(told(record("good", version))[0], "good") for version in (2, 3)}
WRITTEN = {version: record("mangled", version) for version in (2, 3)}


def test_a_record_as_sources_write_it_is_good() -> None:
    for version in (2, 3):
        tables, bad = told(record("good", version))
        assert bad == set()
        assert [len(tables[name]) for name in ("partitions", "commits", "brokers")] == [3, 3, 1]
        assert {row["retention_ms"] for row in tables["partitions"]} == {-1}, "for ever"


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """A record with some of its numbers, texts or bytes replaced."""
    value = bytearray(WRITTEN[draw(st.sampled_from([2, 3]))])
    for _ in range(draw(st.integers(1, 3))):
        how = draw(st.sampled_from(["value", "bytes", "cut", "twice"]))
        if how == "value":
            tokens = [*re.finditer(rb'-?\d+|"[a-z_]*"|true|false|null', bytes(value))]
            token = draw(st.sampled_from(tokens)) if tokens else None
            new = json.dumps(draw(st.sampled_from(VALUES))).encode()
            if token:
                value[token.start() : token.end()] = new
        elif how == "bytes":
            at = draw(st.integers(0, max(0, len(value) - 1)))
            value[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=8))
        elif how == "cut":
            del value[draw(st.integers(0, len(value))) :]
        else:
            at = draw(st.integers(0, len(value)))
            value[at:at] = value[at : at + draw(st.integers(0, 40))]
    return bytes(value)


@examples(40)
@given(mangled(), st.sampled_from([2, 3]))
@example(b"[" * 200_000, 2)
@example(b'{"a":' * 200_000 + b"\n" + b"[" * 200_000, 2)
def test_no_mangled_record_stops_the_job_or_changes_what_others_say(
    value: bytes, version: int
) -> None:
    tables, bad = told(record("good", version), value)
    assert of_cluster(tables, "good") == ALONE[version]
    assert 0 not in bad


NUMBER = re.compile(rb"-?\d+")
ROW_FAULTS = {
    "rack as a number": (b'"rack":"r"', b'"rack":5'),
    "rack that is no text": (b'"rack":"r"', b'"rack":"\\ud800"'),
    "port of 2^33": (b'"port":9092', b'"port":8589934592'),
    "broker of 2^32+5": (b'"brokers":[{"id":1', b'"brokers":[{"id":4294967301'),
    "source of 2^32+5": (b'"broker":1', b'"broker":4294967301'),
    "interval of 10^30": (b'"interval_ms":1000', b'"interval_ms":1' + b"0" * 30),
    "no interval": (b'"interval_ms":1000', b'"interval_ms":0'),
    "part beyond parts": (b'"part":0', b'"part":1'),
    "members of 2^31": (b'"members":1', b'"members":2147483648'),
    "rows of 10^9": (b'"replicas":3', b'"replicas":1000000000'),
    "partition of 2^63-1": (b'"partition":[0,1,2]', b'"partition":[0,1,9223372036854775807]'),
    "partition of 2^62": (b'"partition":[0,1,2]', b'"partition":[0,1,4611686018427387904]'),
    "partition of 2^32": (b'"partition":[0,1,2]', b'"partition":[0,1,4294967296]'),
    "partition of 2^70": (b'"partition":[0,1,2]', b'"partition":[0,1,1180591620717411303424]'),
    "partition of -1": (b'"partition":[0,1,2]', b'"partition":[0,1,-1]'),
    "replica of 2^31": (b"[1,2]", b"[1,2147483648]"),
    "replica that is unknown": (b"[1,2]", b"[1,null]"),
}


@pytest.mark.parametrize("fault", ROW_FAULTS)
def test_a_value_out_of_range_is_counted_and_passed_over(fault: str) -> None:
    old, new = ROW_FAULTS[fault]
    value = WRITTEN[2]
    assert old in value
    tables, bad = told(record("good", 2), value.replace(old, new))
    assert bad == {1}
    assert of_cluster(tables, "good") == ALONE[2]
    ids = [row["partition"] for row in tables["partitions"] if row["cluster"] == "mangled"]
    assert sorted({*ids} - {0, 1, 2}) == [], "no number is cut to fit"


def test_one_row_out_of_range_costs_no_other_row() -> None:
    many = record("many", 2, partitions=101).replace(b",100],", b",4611686018427387904],")
    tables, bad = told(many)
    assert bad == {0}
    found = [row["partition"] for row in tables["partitions"]]
    assert sorted(found) == [*range(100)]


def test_a_record_claims_no_more_than_it_could_hold() -> None:
    """Lists that stand once, and are named by each of many rows, would be gigabytes."""
    value = record("big", 3, partitions=400, replicas=(*range(1, 4_001),))
    tables, bad = told(value, record("good", 3))
    assert bad == {0}
    assert of_cluster(tables, "good") == ALONE[3]
