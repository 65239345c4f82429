"""RecordBatch v2: the header that is all the data path reads, and records where they are opened.

Layout (KIP-98): base_offset i64, batch_length i32 (bytes behind itself), partition_leader_epoch
i32, magic i8, crc u32 (CRC-32C of everything behind it), attributes i16, last_offset_delta i32,
base_timestamp i64, max_timestamp i64, producer_id i64, producer_epoch i16, base_sequence i32,
records_count i32, then the records. Base offset and leader epoch lie before the CRC's range: a
leader patches them without touching the rest.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import fastcrc

from broker.protocol.compression import compress, decompress
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.varint import encode_varint, read_varint, read_varlong, to_int64

HEADER_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""base_offset and batch_length, which batch_length does not count."""
CRC_START = 21
"""Where the CRC's range starts: attributes."""
MAGIC_V2 = 2

CODEC_MASK = 0x07
TIMESTAMP_TYPE_FLAG = 0x08
"""Set: LogAppendTime. Clear: CreateTime."""
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC = struct.Struct(">hiqqqhii")

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """The 61 bytes before the records."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; wraps at 2**31 as Kafka's does."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether timestamps were set by the broker."""
        return bool(self.attributes & TIMESTAMP_TYPE_FLAG)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records, which consumers never see."""
        return bool(self.attributes & CONTROL_FLAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a batch; timestamp in ms since the epoch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record before it has an offset; timestamp in ms since the epoch."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = NO_TIMESTAMP
    headers: tuple[tuple[str, bytes | None], ...] = ()


def parse_batch_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, which must hold 61 bytes.

    :raises struct.error: fewer bytes are there.
    """
    (
        base_offset,
        batch_length,
        partition_leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    ) = _HEADER.unpack_from(buffer, position)
    return BatchHeader(
        base_offset=base_offset,
        batch_length=batch_length,
        partition_leader_epoch=partition_leader_epoch,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=records_count,
    )


def iter_batch_headers(buffer: Buffer) -> Iterator[tuple[BatchHeader, int]]:
    """(header, position in bytes) of each whole batch; stops at a trailing partial one.

    :raises MalformedRecordsError: a batch_length too small for a header, after which nothing
        can be found any more.
    """
    position = 0
    end = len(buffer)
    while end - position >= HEADER_BYTES:
        header = parse_batch_header(buffer, position)
        if header.batch_length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            story = f"batch_length {header.batch_length} at position {position} is too small"
            raise MalformedRecordsError(story)
        if header.size_bytes > end - position:
            return
        yield header, position
        position += header.size_bytes


def batch_crc_is_valid(batch: Buffer, header: BatchHeader) -> bool:
    """Whether the CRC-32C of a batch (a view that starts at its header) is the one it claims."""
    return compute_crc(memoryview(batch)[: header.size_bytes]) == header.crc


def compute_crc(batch: Buffer) -> int:
    """The CRC-32C of one whole batch, from attributes to its end."""
    crc: int = fastcrc.crc32.iscsi(memoryview(batch)[CRC_START:])
    return crc


def iter_records(batch: bytes | memoryview) -> Iterator[Record]:
    """The records of one whole batch, decompressed, with their offsets and timestamps.

    :raises MalformedRecordsError: the records do not follow the format.
    """
    header = parse_batch_header(batch)
    section = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    plain = decompress(header.codec, section)
    position, count = 0, header.records_count
    for _ in range(count):
        length, position = read_varint(plain, position)
        end = position + length
        if length < 0 or end > len(plain):
            raise MalformedRecordsError(f"a record of {length} bytes runs over the batch")
        yield _read_record(plain, position, end, header)
        position = end
    if count < 0 or position < len(plain):
        left = len(plain) - position
        raise MalformedRecordsError(f"{left} bytes are left behind {count} records")


def _read_record(plain: bytes | memoryview, position: int, end: int, header: BatchHeader) -> Record:
    timestamp_delta, position = read_varlong(plain, position + 1)
    offset_delta, position = read_varint(plain, position)
    key, position = _read_bytes(plain, position, end)
    value, position = _read_bytes(plain, position, end)
    count, position = read_varint(plain, position)
    headers = []
    for _ in range(count):
        name, position = _read_bytes(plain, position, end)
        content, position = _read_bytes(plain, position, end)
        if name is None:
            raise MalformedRecordsError("a header without a name")
        headers.append((name.decode(errors="replace"), content))
    if count < 0 or position != end:
        raise MalformedRecordsError(f"a record ends {end - position} bytes behind {count} headers")
    timestamp = to_int64(header.base_timestamp + timestamp_delta)
    return Record(
        offset=header.base_offset + offset_delta,
        timestamp=header.max_timestamp if header.is_log_append_time else timestamp,
        key=key,
        value=value,
        headers=tuple(headers),
    )


def _read_bytes(
    plain: bytes | memoryview, position: int, record_end: int
) -> tuple[bytes | None, int]:
    length, position = read_varint(plain, position)
    if length < 0:
        return None, position
    end = position + length
    if end > record_end:
        raise MalformedRecordsError(f"a field of {length} bytes runs over the record")
    return bytes(plain[position:end]), end


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_control: bool = False,
    is_transactional: bool = False,
) -> bytes:
    """A batch of consecutive offsets from `base_offset`.

    :raises ValueError: no records.
    """
    if not records:
        raise ValueError("a batch needs at least one record")
    base_timestamp = records[0].timestamp
    plain = b"".join(
        [_encode_record(record, delta, base_timestamp) for delta, record in enumerate(records)]
    )
    body = compress(codec, plain)
    attributes = codec
    attributes |= TRANSACTIONAL_FLAG if is_transactional else 0
    attributes |= CONTROL_FLAG if is_control else 0
    checked = (
        _AFTER_CRC.pack(
            attributes,
            len(records) - 1,
            base_timestamp,
            max(record.timestamp for record in records),
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
        + body
    )
    crc = fastcrc.crc32.iscsi(checked)
    length = CRC_START - LOG_OVERHEAD_BYTES + len(checked)
    return struct.pack(">qiibI", base_offset, length, leader_epoch, MAGIC_V2, crc) + checked


def _encode_record(record: NewRecord, offset_delta: int, base_timestamp: int) -> bytes:
    parts = [
        b"\x00",
        encode_varint(record.timestamp - base_timestamp),
        encode_varint(offset_delta),
        *_encode_bytes(record.key),
        *_encode_bytes(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, content in record.headers:
        parts += (*_encode_bytes(name.encode()), *_encode_bytes(content))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _encode_bytes(content: bytes | None) -> tuple[bytes, ...]:
    if content is None:
        return (encode_varint(-1),)
    return encode_varint(len(content)), content
