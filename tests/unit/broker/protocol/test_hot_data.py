"""The hand-written Produce and Fetch codecs agree with kio's, version by version."""

import contextlib
import io
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol import codec
from broker.protocol.errors import MalformedRequestError, RequestHeader
from broker.protocol.hot.fetch import (
    FetchPosition,
    FetchResult,
    PartitionData,
    decode_fetch,
    encode_fetch_response,
)
from broker.protocol.hot.leaders import LeaderHint, NodeEndpoint
from broker.protocol.hot.produce import ProduceResult, decode_produce, encode_produce_response
from broker.protocol.hot.replica_fetch import (
    ReplicaFetchParameters,
    decode_replica_fetch,
    encode_replica_fetch,
)
from tests.unit.broker.protocol.messages import sample, write_with_unknown_tags

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
TOPIC_ID = UUID(int=77)
ENDPOINTS = (NodeEndpoint(2, "10.0.0.2", 9093, None), NodeEndpoint(3, "b3", 1, "rack"))


def encoded(message: Any) -> tuple[Any, memoryview]:
    """A request frame without its size, and its header."""
    frame = memoryview(codec.encode_request(message, correlation_id=5, client_id="c"))[4:]
    return codec.decode_header(frame), frame


def topic_fields(version: int, first_id_version: int, name_field: str) -> dict[str, Any]:
    return {"topic_id": TOPIC_ID} if version >= first_id_version else {name_field: "tøpic"}


def topic_key(version: int, first_id_version: int) -> str | bytes:
    return TOPIC_ID.bytes if version >= first_id_version else "tøpic"


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_request(version: int) -> None:
    big = bytes(range(256)) * 300
    message = codec.build_request(
        0,
        version,
        transactional_id="tx",
        acks=-1,
        timeout=1500,
        topic_data=[
            {
                **topic_fields(version, 13, "name"),
                "partition_data": [
                    {"index": 3, "records": big},
                    {"index": 4, "records": None},
                    {"index": 5, "records": b""},
                ],
            }
        ],
    )
    header, frame = encoded(message)
    request = decode_produce(header, frame)
    assert request[:3] == ("tx", -1, 1500)
    (topic,) = request.topics
    assert topic.topic == topic_key(version, 13)
    assert [(p, r if r is None else bytes(r)) for p, r in topic.partitions] == [
        (3, big),
        (4, None),
        (5, b""),
    ]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_produce_response(version: int) -> None:
    header, _ = encoded(sample(codec.request_type(0, version)))
    results = [
        ProduceResult(3, 0, 2**40, 123_000, 17),
        ProduceResult(4, 6, error_message="not ours", leader=LeaderHint(2, 9)),
    ]
    answer = encode_produce_response(header, [(topic_key(version, 13), results)], ENDPOINTS)
    assert struct.unpack_from(">i", answer) == (len(answer) - 4,)
    correlation_id, message = codec.decode_response(0, version, answer[4:])
    assert correlation_id == 5
    (topic,) = message.responses
    good, bad = topic.partition_responses
    assert (good.index, int(good.error_code), good.base_offset) == (3, 0, 2**40)
    assert good.log_append_time.timestamp() == 123
    assert int(bad.error_code) == 6
    if version >= 5:
        assert good.log_start_offset == 17
    if version >= 8:
        assert bad.error_message == "not ours"
    if version >= 10:
        assert (bad.current_leader.leader_id, bad.current_leader.leader_epoch) == (2, 9)
        assert [(n.node_id, n.host, n.port, n.rack) for n in message.node_endpoints] == [
            tuple(e) for e in ENDPOINTS
        ]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_request(version: int) -> None:
    fields: dict[str, Any] = {
        "max_wait": 500,
        "min_bytes": 1,
        "max_bytes": 50_000,
        "isolation_level": 1,
        "session_id": 8,
        "session_epoch": 9,
        "rack_id": "r",
        "topics": [
            {
                **topic_fields(version, 13, "topic"),
                "partitions": [
                    {
                        "partition": 6,
                        "fetch_offset": 2**41,
                        "partition_max_bytes": 1000,
                        "current_leader_epoch": 4,
                        "last_fetched_epoch": 3,
                        "log_start_offset": 2,
                    }
                ],
            }
        ],
        "forgotten_topics_data": [
            {**topic_fields(version, 13, "topic"), "partitions": [1, 2]},
        ],
    }
    if version >= 15:
        fields["replica_state"] = {"replica_id": 103, "replica_epoch": 55}
    else:
        fields["replica_id"] = 103
    header, frame = encoded(codec.build_request(1, version, **fields))
    request = decode_fetch(header, frame)
    key = topic_key(version, 13)
    assert request.replica_id == 103
    assert request.replica_epoch == (55 if version >= 15 else -1)
    assert request[2:6] == (500, 1, 50_000, 1)
    assert (request.session_id, request.session_epoch) == ((8, 9) if version >= 7 else (0, -1))
    expected = FetchPosition(
        2**41,
        1000,
        4 if version >= 9 else -1,
        3 if version >= 12 else -1,
        2 if version >= 5 else -1,
    )
    assert request.positions == {(key, 6): expected}
    assert request.forgotten == ([(key, 1), (key, 2)] if version >= 7 else [])


@pytest.mark.parametrize("version", range(12, 19))
def test_fetch_request_with_unknown_tags(version: int) -> None:
    message = sample(codec.request_type(1, version))
    head = struct.pack(">hhih", 1, version, 9, -1) + b"\x00"
    with io.BytesIO() as body:
        write_with_unknown_tags(body, message)
        frame = memoryview(head + body.getvalue())
    request = decode_fetch(codec.decode_header(frame), frame)
    assert request.replica_id == 3
    assert request.max_bytes == message.max_bytes
    assert len(request.positions) == 1


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_response(version: int) -> None:
    header, _ = encoded(sample(codec.request_type(1, version)))
    results = [
        FetchResult(1, PartitionData(None, 10, 9, 2, 6, (b"abc", memoryview(b"def")))),
        FetchResult(2, PartitionData(diverging=(3, 44)), 6, LeaderHint(2, 9)),
        FetchResult(3, PartitionData(None, 7, 7, 0)),
    ]
    parts = encode_fetch_response(
        header, [(topic_key(version, 13), results)], session_id=4, endpoints=ENDPOINTS
    )
    answer = b"".join(parts)
    assert struct.unpack_from(">i", answer) == (len(answer) - 4,)
    _, message = codec.decode_response(1, version, answer[4:])
    (topic,) = message.responses
    data, failed, empty = topic.partitions
    assert (data.high_watermark, data.last_stable_offset) == (10, 9)
    assert bytes(data.records) == b"abcdef"
    assert int(failed.error_code) == 6
    assert not empty.records
    if version >= 7:
        assert message.session_id == 4
    if version >= 12:
        assert (failed.diverging_epoch.epoch, failed.diverging_epoch.end_offset) == (3, 44)
        assert (failed.current_leader.leader_id, failed.current_leader.leader_epoch) == (2, 9)
    if version >= 16:
        assert len(message.node_endpoints) == 2


@pytest.mark.parametrize("version", [3, 9, 13])
def test_truncated_produce_is_malformed(version: int) -> None:
    message = sample(codec.request_type(0, version))
    header, frame = encoded(message)
    for size in range(header.body_position, len(frame) - 1):
        with pytest.raises(MalformedRequestError):
            decode_produce(header, frame[:size])


@pytest.mark.parametrize("version", [4, 7, 11, 17])
def test_truncated_fetch_is_malformed(version: int) -> None:
    message = sample(codec.request_type(1, version))
    header, frame = encoded(message)
    for size in range(header.body_position, len(frame) - 1):
        with pytest.raises(MalformedRequestError):
            decode_fetch(header, frame[:size])


def test_replica_fetch_request_is_what_kio_reads() -> None:
    key = (TOPIC_ID.bytes, 3)
    frame = encode_replica_fetch(
        ReplicaFetchParameters("me", 103, 500, 1, 10_000),
        correlation_id=12,
        replica_epoch=99,
        session=(7, 8),
        positions={key: FetchPosition(5, 1000, 4, 3, 2)},
        forgotten=[(TOPIC_ID.bytes, 9)],
    )
    decoded = codec.decode_request(memoryview(frame)[4:])
    assert (decoded.correlation_id, decoded.client_id) == (12, "me")
    message = decoded.message
    assert message.replica_state.replica_epoch == 99
    assert (message.session_id, message.session_epoch) == (7, 8)
    (partition,) = message.topics[0].partitions
    assert message.topics[0].topic_id == TOPIC_ID
    assert (partition.partition, partition.fetch_offset, partition.last_fetched_epoch) == (3, 5, 3)
    assert message.forgotten_topics_data[0].partitions == (9,)
    ours = decode_fetch(codec.decode_header(memoryview(frame)[4:]), memoryview(frame)[4:])
    assert ours.positions == {key: FetchPosition(5, 1000, 4, 3, 2)}


def test_replica_fetch_response_of_kio() -> None:
    message = codec.build_response(
        1,
        17,
        session_id=6,
        responses=[
            {
                "topic_id": TOPIC_ID,
                "partitions": [
                    {
                        "partition_index": 3,
                        "error_code": 0,
                        "high_watermark": 10,
                        "log_start_offset": 1,
                        "diverging_epoch": {"epoch": 2, "end_offset": 8},
                        "aborted_transactions": [{"producer_id": 1, "first_offset": 2}],
                        "records": b"xyz",
                    }
                ],
            }
        ],
    )
    frame = codec.encode_response(1, 17, 12, message)
    response = decode_replica_fetch(memoryview(frame)[4:])
    assert (response.error_code, response.session_id) == (0, 6)
    (partition,) = response.partitions
    assert (partition.topic_id, partition.partition) == (TOPIC_ID.bytes, 3)
    assert (partition.high_watermark, partition.log_start_offset) == (10, 1)
    assert partition.diverging == (2, 8)
    assert bytes(partition.records) == b"xyz"


@given(version=st.integers(3, 13), body=st.binary(max_size=200))
def test_nonsense_in_produce_is_malformed_or_read(version: int, body: bytes) -> None:
    header = RequestHeader(
        api_key=0, api_version=version, correlation_id=1, client_id=None, body_position=0
    )
    with contextlib.suppress(MalformedRequestError):
        decode_produce(header, memoryview(body))


@given(version=st.integers(4, 18), body=st.binary(max_size=200))
def test_nonsense_in_fetch_is_malformed_or_read(version: int, body: bytes) -> None:
    header = RequestHeader(
        api_key=1, api_version=version, correlation_id=1, client_id=None, body_position=0
    )
    with contextlib.suppress(MalformedRequestError):
        decode_fetch(header, memoryview(body))


@given(payload=st.binary(max_size=200))
def test_nonsense_in_a_fetch_response_is_malformed_or_read(payload: bytes) -> None:
    with contextlib.suppress(MalformedRequestError):
        decode_replica_fetch(memoryview(payload))
