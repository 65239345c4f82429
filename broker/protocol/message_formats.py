"""Batches of every record format: 2 as it is, 0 and 1 as the messages that Kafka wrote before 0.11.

Such a message: offset i64, size i32 (bytes behind itself), crc u32 (CRC-32 of all behind it), magic
i8, attributes i8, in format 1 timestamp i64, then key and value, each led by its length as i32 (-1:
null). The offset, the size and the magic lie where format 2 has them too, so that a log of mixed
formats can be walked. A compressed message (a *wrapper*) holds others in its value, and has the
offset of the last of them. In format 0 their offsets are absolute, in format 1 relative.
Source: org.apache.kafka.common.record.AbstractLegacyRecordBatch (Kafka 3.x).
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from broker.protocol.compression import LZ4, decompress
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Record,
    batch_crc_is_valid,
    iter_records,
    parse_batch_header,
)

MAGIC_V0: Final = 0
MAGIC_V1: Final = 1
MAGIC_POSITION: Final = 16
_SIZE_POSITION: Final = 8
_HEAD: Final = struct.Struct(">qiIbb")
_TIMESTAMP: Final = struct.Struct(">q")
_SIZE_MIN: Final = {MAGIC_V0: 14, MAGIC_V1: 22, MAGIC_V2: HEADER_BYTES - LOG_OVERHEAD_BYTES}
"""Of what `size` counts, by format; of an unknown one nothing but the magic must be there."""
_PRIME: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)


class _Head(NamedTuple):
    """Head of a message of format 0 or 1."""

    offset: int
    size: int
    crc: int
    magic: int
    attributes: int


def header_at(buffer: Buffer, position: int) -> BatchHeader:
    """The header of a batch of any format; `HEADER_BYTES` or the whole batch are there.

    That of a message of format 0 or 1 has its offset as base offset; ``open_batch`` knows better.
    That of an unknown format has only base offset, length and magic.

    :raises MalformedRecordsError: a length that cannot be, after which nothing can be found.
    """
    offset, size = struct.unpack_from(">qi", buffer, position)
    (magic,) = struct.unpack_from(">b", buffer, position + MAGIC_POSITION)
    if size < _SIZE_MIN.get(magic, MAGIC_POSITION + 1 - LOG_OVERHEAD_BYTES):
        raise MalformedRecordsError(f"length {size} at position {position} is too small")
    if magic == MAGIC_V2:
        return parse_batch_header(buffer, position)
    return _old_header(buffer, position, offset, size, magic)


def iter_batches(buffer: Buffer) -> Iterator[tuple[BatchHeader, int]]:
    """(header, position in bytes) of each whole batch of any format; stops at a partial one.

    :raises MalformedRecordsError: a length that cannot be, after which nothing can be found.
    """
    position, end = 0, len(buffer)
    while end - position > MAGIC_POSITION:
        (size,) = struct.unpack_from(">i", buffer, position + _SIZE_POSITION)
        if size + LOG_OVERHEAD_BYTES > end - position:
            return
        header = header_at(buffer, position)
        yield header, position
        position += header.size_bytes


def open_batch(batch: Buffer, header: BatchHeader) -> tuple[BatchHeader, Iterator[Record]]:
    """The records of one whole batch of any format, and its header as they tell it.

    The iterator raises MalformedRecordsError too, at the record that cannot be read.

    :raises MalformedRecordsError: the batch cannot be opened.
    """
    if header.magic == MAGIC_V2:
        return header, iter_records(memoryview(batch))
    if header.magic not in (MAGIC_V0, MAGIC_V1):
        raise MalformedRecordsError(f"record format {header.magic} is unknown")
    key, value = _key_and_value(batch, header.magic)
    if not header.codec:
        timestamp = header.base_timestamp
        record = Record(offset=header.base_offset, timestamp=timestamp, key=key, value=value)
        return header, iter((record,))
    if value is None:
        raise MalformedRecordsError("a compressed message without a value")
    if header.codec == LZ4 and header.magic == MAGIC_V0:
        value = _with_lz4_checksum(value)
    return _open_wrapper(header, memoryview(bytes(decompress(header.codec, value))))


def crc_is_valid(batch: Buffer, header: BatchHeader) -> bool:
    """Whether the checksum of one whole batch is the one that it claims, in its format's way."""
    if header.magic == MAGIC_V2:
        return batch_crc_is_valid(batch, header)
    content = memoryview(batch)[MAGIC_POSITION : header.size_bytes]
    return zlib.crc32(content) == header.crc


def _old_header(buffer: Buffer, position: int, offset: int, size: int, magic: int) -> BatchHeader:
    is_known = magic in (MAGIC_V0, MAGIC_V1)
    head = _Head(*_HEAD.unpack_from(buffer, position)) if is_known else None
    timestamp = NO_TIMESTAMP
    if magic == MAGIC_V1:
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, position + _HEAD.size)
    return BatchHeader(
        base_offset=offset,
        batch_length=size,
        partition_leader_epoch=-1,
        magic=magic,
        crc=head.crc if head else 0,
        attributes=head.attributes & 0x0F if head else 0,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=1,
    )


def _key_and_value(message: Buffer, magic: int) -> tuple[bytes | None, bytes | None]:
    position = _HEAD.size + (_TIMESTAMP.size if magic == MAGIC_V1 else 0)
    key, position = _read_bytes(message, position)
    value, _ = _read_bytes(message, position)
    return key, value


def _read_bytes(message: Buffer, position: int) -> tuple[bytes | None, int]:
    if position + 4 > len(message):
        raise MalformedRecordsError("a message ends before its key and value")
    (length,) = struct.unpack_from(">i", message, position)
    position += 4
    if length < 0:
        return None, position
    end = position + length
    if end > len(message):
        raise MalformedRecordsError(f"a field of {length} bytes runs over the message")
    return bytes(message[position:end]), end


def _open_wrapper(wrapper: BatchHeader, plain: memoryview) -> tuple[BatchHeader, Iterator[Record]]:
    first = last = None
    count = end = 0
    for header, position in iter_batches(plain):
        first = header.base_offset if first is None else first
        last, count, end = header.base_offset, count + 1, position + header.size_bytes
        if header.magic != wrapper.magic or header.codec:
            raise MalformedRecordsError("a compressed message holds one of another format or codec")
    if first is None or last is None or end < len(plain):
        raise MalformedRecordsError("a compressed message ends within the messages that it holds")
    shift = wrapper.base_offset - last if wrapper.magic == MAGIC_V1 else 0
    told = replace(
        wrapper,
        base_offset=first + shift,
        last_offset_delta=wrapper.base_offset - first - shift,
        records_count=count,
    )
    return told, _wrapped(wrapper, plain, shift)


def _wrapped(wrapper: BatchHeader, plain: memoryview, shift: int) -> Iterator[Record]:
    for header, position in iter_batches(plain):
        key, value = _key_and_value(plain[position : position + header.size_bytes], header.magic)
        is_broker_time = wrapper.is_log_append_time
        yield Record(
            offset=header.base_offset + shift,
            timestamp=wrapper.max_timestamp if is_broker_time else header.base_timestamp,
            key=key,
            value=value,
        )


def _with_lz4_checksum(frame: bytes) -> bytes:
    """Format 0 has LZ4 frames with a wrong header checksum (KAFKA-3160): with the right one.

    A frame: magic u32, flags u8 (bit 3: an 8-byte content size follows), block size u8, checksum.
    """
    if len(frame) < 7:
        return frame
    end = 14 if frame[4] & 0x08 else 6
    checksum = _xxh32(frame[4:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def _xxh32(data: bytes) -> int:
    """XXH32 (seed 0) of fewer than 16 bytes."""
    whole = len(data) // 4 * 4
    number = _PRIME[4] + len(data)
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        number = _rotated(number + word * _PRIME[2], 17) * _PRIME[3]
    for byte in data[whole:]:
        number = _rotated(number + byte * _PRIME[4], 11) * _PRIME[0]
    number &= 0xFFFFFFFF
    number = (number ^ number >> 15) * _PRIME[1] & 0xFFFFFFFF
    number = (number ^ number >> 13) * _PRIME[2] & 0xFFFFFFFF
    return number ^ number >> 16


def _rotated(number: int, bits: int) -> int:
    number &= 0xFFFFFFFF
    return number << bits | number >> 32 - bits
