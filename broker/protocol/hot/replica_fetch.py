"""The follower's side of Fetch, always version 17: build requests, read responses in place."""

import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker.protocol.errors import MalformedRequestError
from broker.protocol.hot.cursor import Cursor, encode_length, encode_string, encode_tagged
from broker.protocol.hot.fetch import FetchPosition

API_KEY: Final = 1
API_VERSION: Final = 17

_HEADER: Final = struct.Struct(">hhi")
_LIMITS: Final = struct.Struct(">iiibii")
_POSITION: Final = struct.Struct(">iiqiqib")
_REPLICA_STATE: Final = struct.Struct(">iqb")
_RESPONSE: Final = struct.Struct(">ibihi")
_RESULT: Final = struct.Struct(">ihqqq")
_DIVERGING: Final = struct.Struct(">iq")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")

TopicIdPartition = tuple[bytes, int]
"""The 16 bytes of a topic id, and a partition."""


class ReplicaFetchParameters(NamedTuple):
    """Fields that all requests of one fetcher share."""

    client_id: str
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int


class FetchedPartition(NamedTuple):
    """One partition of a response; `records` is valid while the frame is."""

    topic_id: bytes
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging: tuple[int, int] | None
    records: memoryview


class FetchedResponse(NamedTuple):
    """A decoded response."""

    error_code: int
    session_id: int
    partitions: list[FetchedPartition]


def encode_replica_fetch(
    parameters: ReplicaFetchParameters,
    *,
    correlation_id: int,
    replica_epoch: int,
    session: tuple[int, int],
    positions: Mapping[TopicIdPartition, FetchPosition],
    forgotten: Iterable[TopicIdPartition],
) -> bytes:
    """A request frame, size included; `session` is (session id, session epoch)."""
    client_id = encode_string(parameters.client_id, False)
    head = _HEADER.pack(API_KEY, API_VERSION, correlation_id) + client_id + b"\x00"
    limits = _LIMITS.pack(
        parameters.max_wait_ms, parameters.min_bytes, parameters.max_bytes, 0, *session
    )
    state = _REPLICA_STATE.pack(parameters.replica_id, replica_epoch, 0)
    body = b"".join(
        (
            head,
            limits,
            _encode_positions(positions),
            _encode_forgotten(forgotten),
            b"\x01",  # rack_id: ""
            b"\x01" + encode_tagged(1, state),
        )
    )
    return _I32.pack(len(body)) + body


def _encode_positions(positions: Mapping[TopicIdPartition, FetchPosition]) -> bytes:
    topics: dict[bytes, list[bytes]] = {}
    for (topic_id, partition), position in positions.items():
        packed = _POSITION.pack(
            partition,
            position.current_leader_epoch,
            position.fetch_offset,
            position.last_fetched_epoch,
            position.log_start_offset,
            position.max_bytes,
            0,
        )
        topics.setdefault(topic_id, []).append(packed)
    return _encode_topics(topics, b"\x00")


def _encode_forgotten(forgotten: Iterable[TopicIdPartition]) -> bytes:
    topics: dict[bytes, list[bytes]] = {}
    for topic_id, partition in forgotten:
        topics.setdefault(topic_id, []).append(_I32.pack(partition))
    return _encode_topics(topics, b"\x00")


def _encode_topics(topics: Mapping[bytes, list[bytes]], tags: bytes) -> bytes:
    parts = [encode_length(len(topics), True)]
    for topic_id, rows in topics.items():
        parts += (topic_id, encode_length(len(rows), True), *rows, tags)
    return b"".join(parts)


def decode_replica_fetch(payload: memoryview) -> FetchedResponse:
    """The response from its correlation id on.

    :raises MalformedRequestError: the bytes do not follow the schema.
    """
    cursor = Cursor(payload)
    _correlation_id, tags, _throttle_ms, error_code, session_id = cursor.unpack(_RESPONSE)
    if tags:
        raise MalformedRequestError("a response header with tags is not ours")
    partitions: list[FetchedPartition] = []
    for _ in range(cursor.count(True)):
        topic_id = cursor.uuid()
        for _ in range(cursor.count(True)):
            partitions.append(_decode_partition(cursor, topic_id))
        cursor.skip_tags()
    return FetchedResponse(error_code, session_id, partitions)


def _decode_partition(cursor: Cursor, topic_id: bytes) -> FetchedPartition:
    partition, error_code, high_watermark, stable, log_start = cursor.unpack(_RESULT)
    for _ in range(cursor.count(True)):  # aborted_transactions: the log itself has the markers
        cursor.take(16)
        cursor.skip_tags()
    cursor.i32()  # preferred_read_replica
    records = cursor.take(max(cursor.length(True), 0))
    diverging = _decode_diverging(cursor)
    return FetchedPartition(
        topic_id, partition, error_code, high_watermark, stable, log_start, diverging, records
    )


def _decode_diverging(cursor: Cursor) -> tuple[int, int] | None:
    diverging = None
    for _ in range(cursor.uvarint()):
        tag, size_bytes = cursor.uvarint(), cursor.uvarint()
        field = cursor.take(size_bytes)
        if tag == 0:
            epoch, end_offset = Cursor(field).unpack(_DIVERGING)
            diverging = (epoch, end_offset)
    return diverging
