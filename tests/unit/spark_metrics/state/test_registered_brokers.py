"""Registered brokers as the job remembers them, and their log directories."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, strategies

from broker.metrics_schema import BrokerSample, Envelope, LogDirSample, encode_round
from spark_metrics.decode.record_head import KafkaRecord, observed, read_head
from spark_metrics.state.job_state import (
    JobState,
    RegisteredBroker,
    decode_job_state,
    encode_job_state,
    merge_registry,
)
from spark_metrics.state.rounds import SourceKey

DIRECTORIES = (
    LogDirSample(path="/a", total_bytes=100, usable_bytes=40, size_bytes=10, replicas=2),
    LogDirSample(path="/b", is_failed=True),
)


def state_of(*told: tuple[LogDirSample, ...] | None) -> JobState:
    """After one round of broker 1 per told list of directories."""
    state = JobState()
    for number, directories in enumerate(told):
        round_ms = 1_000 + number
        row = BrokerSample(
            id=1, host="h", port=1, fenced=False, read_ms=round_ms, directories=directories
        )
        envelope = Envelope(
            cluster="c", broker=1, broker_epoch=1, round_ms=round_ms, interval_ms=1_000
        )
        (encoded,) = encode_round(envelope, [row])
        record = KafkaRecord(partition=0, offset=number, timestamp_ms=round_ms, value=encoded)
        heads = [read_head(record)]
        state = state.observe(observed(heads, offsets_of=heads, at_ms=round_ms))
    return state


def directories_in(state: JobState) -> tuple[LogDirSample, ...] | None:
    return state.registry[SourceKey("c", 1)].directories


def test_log_directories_stay_until_their_broker_tells_others() -> None:
    assert directories_in(state_of(DIRECTORIES, None)) == DIRECTORIES
    assert directories_in(state_of(DIRECTORIES, DIRECTORIES[:1])) == DIRECTORIES[:1]
    state = state_of(DIRECTORIES)
    assert decode_job_state(json.loads(json.dumps(encode_job_state(state)))) == state


def test_a_memory_of_another_version_keeps_what_was_read_and_counted() -> None:
    """Each place of a document may lack, or have more than this version knows."""
    state = replace(state_of(DIRECTORIES), lost_records_total=3, late_rounds_total=2)
    whole = json.dumps(encode_job_state(state))
    kept = (state.next_offsets, 3, 2)
    others = [json.loads(whole) for _ in range(4)]
    del others[0]["registry"][0]["directories"], others[1]["clock"]
    others[2]["sources"][0]["later"] = 1
    others[3]["registry"][0]["later"] = 1
    for document, is_older in zip(others, (True, True, False, False), strict=True):
        found = decode_job_state(document)
        assert (found.next_offsets, found.lost_records_total, found.late_rounds_total) == kept
        assert bool(found.registry) is is_older


def test_a_broker_whose_directories_cannot_be_read_is_a_bad_row() -> None:
    row = {"id": 1, "host": "h", "port": 1, "fenced": False, "read_ms": 1}
    wrong: tuple[Any, ...] = (
        "/a",
        [{}],
        [{"path": 7}],
        [{"path": "/a", "replicas": -1}],
        [{"path": "/"}] * 1_001,
    )
    for told in wrong:
        rows = [{**row, "directories": told}]
        value = {"v": 2, "cluster": "c", "broker": 1, "round_ms": 1, "brokers": rows}
        head = read_head(
            KafkaRecord(partition=0, offset=0, timestamp_ms=1, value=json.dumps(value).encode())
        )
        assert (head.is_bad, head.brokers) == (True, ())


def a_row(broker: int, read_ms: int, total_bytes: int | None, *, has_directories: bool) -> Any:
    return RegisteredBroker(
        cluster="c",
        broker=broker,
        host=f"told at {read_ms}",
        port=1,
        rack=None,
        is_fenced=False,
        is_controller=False,
        broker_epoch=None,
        disk_total_bytes=total_bytes,
        disk_usable_bytes=total_bytes,
        read_ms=read_ms,
        directories=DIRECTORIES if has_directories else None,
    )


ROWS = strategies.lists(
    strategies.builds(
        a_row,
        strategies.integers(1, 2),
        strategies.integers(1, 9),
        strategies.sampled_from((None, None, 5, 7)),
        has_directories=strategies.booleans(),
    ),
    unique_by=lambda row: (row.broker, row.read_ms),
    max_size=8,
)


@given(ROWS, ROWS)
def test_rows_of_many_sources_say_the_same_together_as_one_after_the_other(
    known: list[RegisteredBroker], rows: list[RegisteredBroker]
) -> None:
    before = merge_registry({}, known, {})
    one_by_one = before
    for row in sorted(rows, key=lambda row: row.read_ms):
        one_by_one = merge_registry(one_by_one, [row], {})
    assert merge_registry(before, rows, {}) == one_by_one
