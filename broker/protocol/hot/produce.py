"""Produce 3-13 by hand: records stay views of the frame.

Versions: 5 adds log_start_offset, 8 per-record errors and a message, 9 is flexible, 10 adds leader
hints, 13 names topics by id.
"""

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.protocol.errors import RequestHeader
from broker.protocol.hot.cursor import Cursor, encode_length, encode_string
from broker.protocol.hot.leaders import (
    LeaderHint,
    NodeEndpoint,
    encode_leader_hint,
    encode_node_endpoints,
)

_ACKS_TIMEOUT: Final = struct.Struct(">hi")
_I32: Final = struct.Struct(">i")
_RESULT: Final = struct.Struct(">ihqq")
_RESULT_FROM_5: Final = struct.Struct(">ihqqq")

TopicKey = str | bytes
"""A topic's name until version 12, the 16 bytes of its id from 13."""


class ProducedPartition(NamedTuple):
    """Records for one partition; None when the client sent null."""

    partition: int
    records: memoryview | None


class ProducedTopic(NamedTuple):
    """The partitions of one topic in a request."""

    topic: TopicKey
    partitions: list[ProducedPartition]


class ProduceRequest(NamedTuple):
    """A decoded request; the records are only valid while the frame is."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProducedTopic]


class ProduceResult(NamedTuple):
    """Answer about one partition's records."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    leader: LeaderHint | None = None
    record_errors: Mapping[int, str] = MappingProxyType({})
    """Why single records were refused, by their number in the batch."""


def decode_produce(header: RequestHeader, frame: memoryview) -> ProduceRequest:
    """The request behind `header`; of a partition that is named twice the last records count.

    That is what Kafka keeps (KafkaApis.handleProduceRequest fills a map).

    :raises MalformedRequestError: the body does not follow the schema.
    """
    version = header.api_version
    is_flexible = version >= 9
    cursor = Cursor(frame, header.body_position)
    transactional_id = cursor.nullable_string(is_flexible)
    acks, timeout_ms = cursor.unpack(_ACKS_TIMEOUT)
    topics: dict[TopicKey, dict[int, ProducedPartition]] = {}
    for _ in range(cursor.count(is_flexible)):
        topic: TopicKey = cursor.uuid() if version >= 13 else cursor.string(is_flexible)
        _decode_partitions(cursor, is_flexible, topics.setdefault(topic, {}))
        if is_flexible:
            cursor.skip_tags()
    named = [ProducedTopic(topic, list(found.values())) for topic, found in topics.items()]
    return ProduceRequest(transactional_id, acks, timeout_ms, named)


def _decode_partitions(
    cursor: Cursor, is_flexible: bool, found: dict[int, ProducedPartition]
) -> None:
    for _ in range(cursor.count(is_flexible)):
        partition = cursor.i32()
        size_bytes = cursor.length(is_flexible)
        records = None if size_bytes < 0 else cursor.take(size_bytes)
        found[partition] = ProducedPartition(partition, records)
        if is_flexible:
            cursor.skip_tags()


def encode_produce_response(
    header: RequestHeader,
    topics: Sequence[tuple[TopicKey, Sequence[ProduceResult]]],
    endpoints: Sequence[NodeEndpoint] = (),
    throttle_ms: int = 0,
) -> bytes:
    """The whole response frame, size included."""
    version = header.api_version
    is_flexible = version >= 9
    parts = [_I32.pack(header.correlation_id)]
    if is_flexible:
        parts.append(b"\x00")
    parts.append(encode_length(len(topics), is_flexible))
    for topic, results in topics:
        parts.append(topic if isinstance(topic, bytes) else encode_string(topic, is_flexible))
        parts.append(encode_length(len(results), is_flexible))
        parts.extend(_encode_result(result, version) for result in results)
        if is_flexible:
            parts.append(b"\x00")
    parts.append(_I32.pack(throttle_ms))
    if is_flexible:
        parts.append(encode_node_endpoints(endpoints) if version >= 10 else b"\x00")
    body = b"".join(parts)
    return _I32.pack(len(body)) + body


def _encode_result(result: ProduceResult, version: int) -> bytes:
    if version < 5:
        return _RESULT.pack(*result[:4])
    encoded = _RESULT_FROM_5.pack(*result[:5])
    if version < 8:
        return encoded
    is_flexible = version >= 9
    encoded += encode_length(len(result.record_errors), is_flexible)
    for number, why in result.record_errors.items():
        encoded += _I32.pack(number) + encode_string(why, is_flexible)
        if is_flexible:
            encoded += b"\x00"
    encoded += encode_string(result.error_message, is_flexible)
    if not is_flexible:
        return encoded
    if version >= 10 and result.leader is not None:
        return encoded + b"\x01" + encode_leader_hint(0, result.leader)
    return encoded + b"\x00"
