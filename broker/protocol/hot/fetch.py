"""Fetch 4-18 by hand: the request is read in place, records go out as they lie in their files.

Versions: 5 adds log start offsets, 7 sessions (KIP-227), 9 leader epochs, 11 racks, 12 is flexible
and adds the last fetched epoch (KIP-595), 13 names topics by id, 15 moves the replica into a tag
with its broker epoch (KIP-903), 16 adds addresses of hinted leaders (KIP-951). The tags of 17
(directory of the replica) and 18 (its high watermark) are skipped.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from broker.protocol.errors import RequestHeader
from broker.protocol.hot.cursor import Cursor, encode_length, encode_string, encode_tagged
from broker.protocol.hot.leaders import (
    LeaderHint,
    NodeEndpoint,
    encode_leader_hint,
    encode_node_endpoints,
)

TopicKey = str | bytes
"""A topic's name until version 12, the 16 bytes of its id from 13."""
TopicPartitionKey = tuple[TopicKey, int]

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
"""Session epoch of a request that wants no session (and ends the one it names)."""

_REPLICA: Final = struct.Struct(">i")
_LIMITS: Final = struct.Struct(">iiib")
_SESSION: Final = struct.Struct(">ii")
_REPLICA_STATE: Final = struct.Struct(">iq")
_PARTITION_FROM_4: Final = struct.Struct(">iqi")
_PARTITION_FROM_5: Final = struct.Struct(">iqqi")
_PARTITION_FROM_9: Final = struct.Struct(">iiqqi")
_PARTITION_FROM_12: Final = struct.Struct(">iiqiqi")
_RESULT_FROM_4: Final = struct.Struct(">ihqq")
_RESULT_FROM_5: Final = struct.Struct(">ihqqq")
_ABORTED: Final = struct.Struct(">qq")
_DIVERGING: Final = struct.Struct(">iqb")
_I32: Final = struct.Struct(">i")
_NULL_ARRAY: Final = b"\xff\xff\xff\xff"
_NO_READ_REPLICA: Final = b"\xff\xff\xff\xff"


class FetchPosition(NamedTuple):
    """Where a fetcher stands in one partition; -1 for what the version does not carry."""

    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


class FetchRequest(NamedTuple):
    """A decoded request; `replica_id` is -1 for consumers."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    positions: dict[TopicPartitionKey, FetchPosition]
    forgotten: list[TopicPartitionKey]
    may_read_followers: bool = False
    """Of consumers that know of replicas to read from (KIP-392)."""


class PartitionData(NamedTuple):
    """Outcome of a fetch in one partition, or the broker's own error in place of records.

    `slices` are bytes or file ranges of `size_bytes` in total; `diverging` is (epoch, end offset);
    `aborted` are producer ids and first offsets, None where not only what is committed is read.
    """

    error: Exception | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    size_bytes: int = 0
    slices: Sequence[Any] = ()
    diverging: tuple[int, int] | None = None
    aborted: Sequence[tuple[int, int]] | None = None


class FetchResult(NamedTuple):
    """One partition's part of a response."""

    partition: int
    data: PartitionData
    error_code: int = 0
    leader: LeaderHint | None = None


def decode_fetch(header: RequestHeader, frame: memoryview) -> FetchRequest:
    """The request behind `header`.

    :raises MalformedRequestError: the body does not follow the schema.
    """
    version = header.api_version
    cursor = Cursor(frame, header.body_position)
    replica_id, replica_epoch = -1, -1
    if version < 15:
        (replica_id,) = cursor.unpack(_REPLICA)
    max_wait_ms, min_bytes, max_bytes, isolation_level = cursor.unpack(_LIMITS)
    session_id, session_epoch = cursor.unpack(_SESSION) if version >= 7 else (0, FINAL_EPOCH)
    positions = _decode_positions(cursor, version)
    forgotten = _decode_forgotten(cursor, version) if version >= 7 else []
    if version >= 11:
        cursor.nullable_string(version >= 12)  # rack_id: no replica is preferred here
    if version >= 12:
        replica_id, replica_epoch = _decode_tags(cursor, replica_id)
    return FetchRequest(
        replica_id,
        replica_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        positions,
        forgotten,
        version >= 11,
    )


def _decode_topic(cursor: Cursor, version: int) -> TopicKey:
    return cursor.uuid() if version >= 13 else cursor.string(version >= 12)


def _decode_positions(cursor: Cursor, version: int) -> dict[TopicPartitionKey, FetchPosition]:
    is_flexible = version >= 12
    positions: dict[TopicPartitionKey, FetchPosition] = {}
    for _ in range(cursor.count(is_flexible)):
        topic = _decode_topic(cursor, version)
        for _ in range(cursor.count(is_flexible)):
            partition, position = _decode_position(cursor, version)
            positions[topic, partition] = position
            if is_flexible:
                cursor.skip_tags()
        if is_flexible:
            cursor.skip_tags()
    return positions


def _decode_position(cursor: Cursor, version: int) -> tuple[int, FetchPosition]:
    if version >= 12:
        partition, epoch, offset, last_epoch, start, size = cursor.unpack(_PARTITION_FROM_12)
        return partition, FetchPosition(offset, size, epoch, last_epoch, start)
    if version >= 9:
        partition, epoch, offset, start, size = cursor.unpack(_PARTITION_FROM_9)
        return partition, FetchPosition(offset, size, epoch, -1, start)
    if version >= 5:
        partition, offset, start, size = cursor.unpack(_PARTITION_FROM_5)
        return partition, FetchPosition(offset, size, -1, -1, start)
    partition, offset, size = cursor.unpack(_PARTITION_FROM_4)
    return partition, FetchPosition(offset, size)


def _decode_forgotten(cursor: Cursor, version: int) -> list[TopicPartitionKey]:
    is_flexible = version >= 12
    forgotten: list[TopicPartitionKey] = []
    for _ in range(cursor.count(is_flexible)):
        topic = _decode_topic(cursor, version)
        count = cursor.count(is_flexible)
        forgotten.extend((topic, cursor.i32()) for _ in range(count))
        if is_flexible:
            cursor.skip_tags()
    return forgotten


def _decode_tags(cursor: Cursor, replica_id: int) -> tuple[int, int]:
    """The replica and its broker epoch (tag 1); other tags are skipped."""
    replica_epoch = -1
    for _ in range(cursor.uvarint()):
        tag, size_bytes = cursor.uvarint(), cursor.uvarint()
        field = cursor.take(size_bytes)
        if tag == 1:
            replica_id, replica_epoch = Cursor(field).unpack(_REPLICA_STATE)
    return replica_id, replica_epoch


def encode_fetch_response(
    header: RequestHeader,
    topics: Sequence[tuple[TopicKey, Sequence[FetchResult]]],
    *,
    error_code: int = 0,
    session_id: int = NO_SESSION,
    endpoints: Sequence[NodeEndpoint] = (),
    throttle_ms: int = 0,
) -> list[Any]:
    """The response as parts, the first led by the size; record slices are passed through."""
    version = header.api_version
    is_flexible = version >= 12
    writer = _PartWriter()
    head = _I32.pack(header.correlation_id) + (b"\x00" if is_flexible else b"")
    writer.write(head + _I32.pack(throttle_ms))
    if version >= 7:
        writer.write(struct.pack(">hi", error_code, session_id))
    writer.write(encode_length(len(topics), is_flexible))
    for topic, results in topics:
        writer.write(topic if isinstance(topic, bytes) else encode_string(topic, is_flexible))
        writer.write(encode_length(len(results), is_flexible))
        for result in results:
            _write_result(writer, result, version)
        if is_flexible:
            writer.write(b"\x00")
    if is_flexible:
        writer.write(encode_node_endpoints(endpoints if version >= 16 else ()))
    return writer.finish()


def _write_result(writer: "_PartWriter", result: FetchResult, version: int) -> None:
    partition, data, error_code, _ = result
    offsets = data[1:4] if version >= 5 else data[1:3]
    head = _RESULT_FROM_5 if version >= 5 else _RESULT_FROM_4
    writer.write(head.pack(partition, error_code, *offsets))
    is_flexible = version >= 12
    writer.write(_encode_aborted(data.aborted, is_flexible))
    if version >= 11:
        writer.write(_NO_READ_REPLICA)
    writer.write(encode_length(data.size_bytes, is_flexible))
    if data.size_bytes:
        writer.write_slices(data.slices, data.size_bytes)
    if is_flexible:
        writer.write(_encode_result_tags(result))


def _encode_aborted(aborted: Sequence[tuple[int, int]] | None, is_flexible: bool) -> bytes:
    if aborted is None:
        return b"\x00" if is_flexible else _NULL_ARRAY
    end = b"\x00" if is_flexible else b""
    entries = [_ABORTED.pack(*each) + end for each in aborted]
    return encode_length(len(entries), is_flexible) + b"".join(entries)


def _encode_result_tags(result: FetchResult) -> bytes:
    tags = []
    if result.data.diverging is not None:
        tags.append(encode_tagged(0, _DIVERGING.pack(*result.data.diverging, 0)))
    if result.leader is not None:
        tags.append(encode_leader_hint(1, result.leader))
    return bytes((len(tags),)) + b"".join(tags)


class _PartWriter:
    """Joins small bytes, passes slices through, and puts the size in front."""

    __slots__ = ("_buffer", "_parts", "_size_bytes")

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._buffer = bytearray(4)
        self._size_bytes = 0

    def write(self, data: bytes) -> None:
        self._buffer += data

    def write_slices(self, slices: Sequence[Any], size_bytes: int) -> None:
        self._flush()
        self._parts.extend(slices)
        self._size_bytes += size_bytes

    def _flush(self) -> None:
        if self._buffer:
            self._size_bytes += len(self._buffer)
            self._parts.append(self._buffer)
            self._buffer = bytearray()

    def finish(self) -> list[Any]:
        self._flush()
        _I32.pack_into(self._parts[0], 0, self._size_bytes - 4)
        return self._parts
