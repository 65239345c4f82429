"""Kafka's records of __transaction_state, so that Kafka's own tools can read the topic.

Key: int16 0, transactional id. Value: int16 version, producer id int64, epoch int16, timeout int32,
state int8, partitions by topic (null while Empty), last update int64, start int64. Version 0 is
written, as Kafka does without transaction.version 2. Version 1 is flexible and has tags: previous
producer id (0), next producer id (1), the client's transaction version (2). A null value is a
tombstone.
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
from broker.protocol.hot.cursor import Cursor

_VERSION_MAX: Final = 1
_PREVIOUS_PRODUCER_ID: Final = 0
_HEAD: Final = struct.Struct(">hqhib")
_INT64: Final = struct.Struct(">q")


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
    """TransactionLogValue, version 0."""
    number = metadata.state.number
    head = _HEAD.pack(0, metadata.producer_id, metadata.epoch, metadata.timeout_ms, number)
    writer = Writer()
    topics = _by_topic(metadata.partitions)
    writer.int32(-1 if metadata.state is TransactionState.EMPTY else len(topics))
    for topic, partitions in topics.items():
        writer.string(topic).int32(len(partitions))
        for partition in partitions:
            writer.int32(partition)
    return head + writer.int64(metadata.update_ms).int64(metadata.start_ms).to_bytes()


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
    previous = _read_previous_producer_id(reader) if is_flexible else NO_PRODUCER_ID
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        epoch=epoch,
        previous_producer_id=previous,
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


def _read_previous_producer_id(reader: Reader) -> int:
    previous = NO_PRODUCER_ID
    for _ in range(reader.uvarint()):
        tag, size_bytes = reader.uvarint(), reader.uvarint()
        field = reader.take(size_bytes)
        if tag == _PREVIOUS_PRODUCER_ID:
            (previous,) = Cursor(field).unpack(_INT64)
    return previous
