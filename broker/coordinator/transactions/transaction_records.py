"""Kafka's records of __transaction_state, so that Kafka's own tools can read the topic.

Key: int16 0, transactional id. Value: int16 version, producer id int64, epoch int16, timeout int32,
state int8, partitions by topic (null while Empty), last update int64, start int64. Version 1 is
written, as Kafka does with transaction.version 2; it is flexible and has tags: previous producer id
(0), next producer id (1), the client's transaction version (2). A null value is a tombstone.
Source: TransactionLogKey.json and TransactionLogValue.json of Kafka's transaction-coordinator.
"""

import struct
from typing import Final

from broker.coordinator.errors import RecordFormatError
from broker.coordinator.transactions.transaction_metadata import (
    NO_PRODUCER_ID,
    STATES,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from broker.coordinator.wire import Reader, Writer
from broker.protocol.hot.cursor import (
    Cursor,
    encode_length,
    encode_string,
    encode_tagged,
    encode_uvarint,
)

_VERSION_MAX: Final = 1
_PREVIOUS_PRODUCER_ID: Final = 0
_NEXT_PRODUCER_ID: Final = 1
_CLIENT_VERSION: Final = 2
_HEAD: Final = struct.Struct(">hqhib")
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")
_TAGS: Final = {_PREVIOUS_PRODUCER_ID: _INT64, _NEXT_PRODUCER_ID: _INT64, _CLIENT_VERSION: _INT16}


def encode_key(transactional_id: str) -> bytes:
    """TransactionLogKey, version 0."""
    return Writer().int16(0).string(transactional_id).to_bytes()


def decode_key(data: bytes) -> str | None:
    """The transactional id, or None for a kind that is not known.

    Raises:
        RecordFormatError: the key is cut short.
    """
    reader = Reader(data)
    return reader.string(False) if reader.i16() == 0 else None


def encode_value(metadata: TransactionMetadata) -> bytes:
    """TransactionLogValue, version 1."""
    number = metadata.state.number
    producer = metadata.producer_id, metadata.epoch
    head = _HEAD.pack(_VERSION_MAX, *producer, metadata.timeout_ms, number)
    topics = _by_topic(metadata.partitions)
    is_null = metadata.state is TransactionState.EMPTY
    parts = [head, encode_length(-1 if is_null else len(topics), True)]
    for topic, partitions in topics.items():
        parts += [encode_string(topic, True), encode_length(len(partitions), True)]
        parts += [_INT32.pack(partition) for partition in partitions]
        parts.append(encode_uvarint(0))
    parts += [_INT64.pack(metadata.update_ms), _INT64.pack(metadata.start_ms)]
    tags = _encode_tags(metadata)
    parts.append(encode_uvarint(len(tags)))
    return b"".join([*parts, *(encode_tagged(tag, field) for tag, field in tags.items())])


def _encode_tags(metadata: TransactionMetadata) -> dict[int, bytes]:
    """Fields that have not their default value."""
    tags = {}
    if metadata.previous_producer_id != NO_PRODUCER_ID:
        tags[_PREVIOUS_PRODUCER_ID] = _INT64.pack(metadata.previous_producer_id)
    if metadata.next_producer_id != NO_PRODUCER_ID:
        tags[_NEXT_PRODUCER_ID] = _INT64.pack(metadata.next_producer_id)
    if metadata.version:
        tags[_CLIENT_VERSION] = _INT16.pack(metadata.version)
    return tags


def _by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def decode_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    """Inverse of `encode_value`, versions 0 and 1.

    Raises:
        RecordFormatError: an unknown version or state, or a value cut short.
    """
    reader = Reader(data)
    version, producer_id, epoch, timeout_ms, number = reader.unpack(_HEAD)
    if not 0 <= version <= _VERSION_MAX or number not in STATES:
        raise RecordFormatError(f"a transaction of version {version} in state {number}")
    is_flexible = version >= 1
    partitions = _read_partitions(reader, is_flexible)
    update_ms, start_ms = reader.i64(), reader.i64()
    tags = _read_tags(reader) if is_flexible else {}
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        epoch=epoch,
        previous_producer_id=tags.get(_PREVIOUS_PRODUCER_ID, NO_PRODUCER_ID),
        next_producer_id=tags.get(_NEXT_PRODUCER_ID, NO_PRODUCER_ID),
        version=tags.get(_CLIENT_VERSION, 0),
        timeout_ms=timeout_ms,
        state=STATES[number],
        partitions=frozenset(partitions),
        start_ms=start_ms,
        update_ms=update_ms,
    )


def _read_partitions(reader: Reader, is_flexible: bool) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for _ in range(max(reader.length(is_flexible), 0)):
        topic = reader.string(is_flexible)
        found += [(topic, reader.i32()) for _ in range(reader.count(is_flexible))]
        if is_flexible:
            reader.skip_tags()
    return found


def _read_tags(reader: Reader) -> dict[int, int]:
    """The numbers among the tagged fields that are known."""
    found = {}
    for _ in range(reader.uvarint()):
        tag, size_bytes = reader.uvarint(), reader.uvarint()
        field = reader.take(size_bytes)
        if tag in _TAGS:
            (found[tag],) = Cursor(field).unpack(_TAGS[tag])
    return found
