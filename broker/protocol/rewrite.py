"""Batches in another codec, and with some of their records taken out, as log compaction does.

A rewritten batch keeps its base offset, its last offset and its producer's sequence, so offsets
and duplicate detection stand as they were; what is left of the records keeps its bytes. When
tombstones stay, the batch says until when (KIP-534): attributes bit 6 is set, and the base
timestamp is the time, in ms since the epoch, from which they may go.
Source: org.apache.kafka.common.record.internal.MemoryRecords.filterTo (Kafka 4.x).
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import fastcrc

from broker.protocol.compression import compress, decompress
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import (
    CODEC_MASK,
    CRC_START,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    NO_TIMESTAMP,
    BatchHeader,
)
from broker.protocol.varint import encode_varint, read_varint, read_varlong, to_int64

_BEFORE_CRC: Final = struct.Struct(">qiibI")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")


class RecordSpan(NamedTuple):
    """A record within the plain records of its batch: bytes `start`..`end`, its length included.

    `body` is where its offset delta starts, behind attributes and timestamp delta.
    """

    start: int
    end: int
    body: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    is_tombstone: bool


def plain_records(batch: bytes, header: BatchHeader) -> bytes:
    """The records of a whole batch, decompressed.

    :raises MalformedRecordsError: they cannot be.
    """
    return bytes(decompress(header.codec, memoryview(batch)[HEADER_BYTES : header.size_bytes]))


def scan_records(plain: bytes, count: int) -> Iterator[RecordSpan]:
    """The spans of `count` records; values and headers are passed over.

    :raises MalformedRecordsError: the records do not follow the format.
    """
    position = 0
    if count < 0:
        raise MalformedRecordsError(f"a batch of {count} records")
    for _ in range(count):
        start = position
        length, position = read_varint(plain, position)
        end = position + length
        if length <= 0 or end > len(plain):
            raise MalformedRecordsError(f"a record of {length} bytes runs over the batch")
        timestamp_delta, body = read_varlong(plain, position + 1)
        offset_delta, position = read_varint(plain, body)
        key_bytes, position = read_varint(plain, position)
        key = None
        if key_bytes >= 0:
            key = plain[position : position + key_bytes]
            position += key_bytes
        value_bytes, position = read_varint(plain, position)
        if position > end:
            raise MalformedRecordsError("a key runs over its record")
        yield RecordSpan(start, end, body, timestamp_delta, offset_delta, key, value_bytes < 0)
        position = end


RECORD_BYTES_MIN: Final = 6
"""Attributes, deltas of time and offset, lengths of key and value, and the number of headers."""


def check_records(plain: bytes | memoryview, count: int) -> None:
    """Follow the lengths of `count` records to the end; nothing within a record is read.

    :raises MalformedRecordsError: they do not fill the batch exactly.
    """
    position, end = 0, len(plain)
    for _ in range(count):
        if position + 1 >= end:
            raise MalformedRecordsError(f"the batch ends before its {count} records do")
        first, second = plain[position], plain[position + 1]
        if first < 0x80:
            length, position = first, position + 1
        elif second < 0x80:
            length, position = first & 0x7F | second << 7, position + 2
        else:
            signed, position = read_varint(plain, position)
            length = 2 * signed if signed >= 0 else 1
        if length & 1 or length < 2 * RECORD_BYTES_MIN:
            raise MalformedRecordsError("a record has a length that no record has")
        position += length >> 1
    if position != end:
        raise MalformedRecordsError(f"{count} records end at {position} of {end} bytes")


def delete_horizon_ms(header: BatchHeader) -> int | None:
    """From when on the tombstones of a batch may go; None when that is not settled yet."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON_FLAG else None


def rewrite_batch(
    header: BatchHeader, plain: bytes, spans: Sequence[RecordSpan], *, horizon_ms: int | None
) -> bytes:
    """The batch with only these of its records, in its codec.

    `horizon_ms` is the delete horizon that it shall have; None leaves its base timestamp.
    """
    base_timestamp = header.base_timestamp if horizon_ms is None else horizon_ms
    shift_ms = header.base_timestamp - base_timestamp
    body = b"".join([_shifted(plain, span, shift_ms) for span in spans])
    attributes = header.attributes & ~DELETE_HORIZON_FLAG
    if horizon_ms is not None:
        attributes |= DELETE_HORIZON_FLAG
    max_timestamp = header.max_timestamp
    if not header.is_log_append_time:
        times = (to_int64(header.base_timestamp + span.timestamp_delta) for span in spans)
        max_timestamp = max(times)
    checked = _AFTER_CRC.pack(
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        len(spans),
    )
    return _sealed(header, checked + compress(header.codec, body))


def recompress_batch(batch: memoryview, header: BatchHeader, codec: int, level: int) -> bytes:
    """A whole batch with the same records in another codec.

    :raises MalformedRecordsError: the records cannot be decompressed.
    """
    plain = decompress(header.codec, batch[HEADER_BYTES : header.size_bytes])
    attributes = struct.pack(">h", header.attributes & ~CODEC_MASK | codec)
    rest = bytes(batch[CRC_START + len(attributes) : HEADER_BYTES])
    return _sealed(header, attributes + rest + compress(codec, bytes(plain), level))


def empty_batch(header: BatchHeader) -> bytes:
    """The batch without records: what is left where only the producer's sequence counts."""
    checked = _AFTER_CRC.pack(
        header.attributes & ~(DELETE_HORIZON_FLAG | CODEC_MASK),
        header.last_offset_delta,
        NO_TIMESTAMP,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        0,
    )
    return _sealed(header, checked)


def _sealed(header: BatchHeader, checked: bytes) -> bytes:
    length = CRC_START - LOG_OVERHEAD_BYTES + len(checked)
    return (
        _BEFORE_CRC.pack(
            header.base_offset,
            length,
            header.partition_leader_epoch,
            MAGIC_V2,
            fastcrc.crc32.iscsi(checked),
        )
        + checked
    )


def _shifted(plain: bytes, span: RecordSpan, shift_ms: int) -> bytes:
    """The record with its timestamp told from another base."""
    if not shift_ms:
        return plain[span.start : span.end]
    rest = plain[span.body : span.end]
    content = b"\x00" + encode_varint(to_int64(span.timestamp_delta + shift_ms)) + rest
    return encode_varint(len(content)) + content
