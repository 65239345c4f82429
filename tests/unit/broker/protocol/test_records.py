"""Batches that we build are read back, and their headers say what is in them."""

import struct

import pytest

from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import (
    HEADER_BYTES,
    NewRecord,
    batch_crc_is_valid,
    build_batch,
    iter_batch_headers,
    iter_records,
    parse_batch_header,
)

RECORDS = [
    NewRecord(key=b"k", value=b"v" * 100, timestamp=1_700_000_000_000),
    NewRecord(key=None, value=None, timestamp=1_700_000_000_500),
    NewRecord(key=b"", value=b"x" * 70_000, timestamp=1_699_999_999_000, headers=(("h", None),)),
    NewRecord(key=b"z", value=b"", timestamp=1_700_000_000_000, headers=(("a", b"b"), ("é", b""))),
]


@pytest.mark.parametrize("codec", range(5))
def test_round_trip(codec: int) -> None:
    batch = build_batch(RECORDS, base_offset=1000, leader_epoch=3, codec=codec)
    header = parse_batch_header(batch)
    assert header.size_bytes == len(batch)
    assert (header.base_offset, header.last_offset, header.records_count) == (1000, 1003, 4)
    assert (header.partition_leader_epoch, header.codec, header.magic) == (3, codec, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_500)
    assert batch_crc_is_valid(batch, header)
    got = list(iter_records(memoryview(batch)))
    assert [record.offset for record in got] == [1000, 1001, 1002, 1003]
    for record, new in zip(got, RECORDS, strict=True):
        assert (record.key, record.value, record.timestamp, record.headers) == (
            new.key,
            new.value,
            new.timestamp,
            new.headers,
        )


def test_patching_offset_and_epoch_keeps_the_crc() -> None:
    batch = bytearray(build_batch(RECORDS))
    struct.pack_into(">q", batch, 0, 77)
    struct.pack_into(">i", batch, 12, 9)
    header = parse_batch_header(batch)
    assert (header.base_offset, header.partition_leader_epoch) == (77, 9)
    assert batch_crc_is_valid(batch, header)


@pytest.mark.parametrize("position", [21, 30, HEADER_BYTES, HEADER_BYTES + 40])
def test_a_flipped_bit_fails_the_crc(position: int) -> None:
    batch = bytearray(build_batch(RECORDS))
    batch[position] ^= 1
    assert not batch_crc_is_valid(batch, parse_batch_header(batch))


def test_headers_stop_at_a_partial_batch() -> None:
    first, second = build_batch(RECORDS[:1]), build_batch(RECORDS[:2], base_offset=1)
    whole = first + second
    assert [position for _, position in iter_batch_headers(whole)] == [0, len(first)]
    for end in (len(whole) - 1, len(first) + 61, len(first) + 5, len(first)):
        assert [p for _, p in iter_batch_headers(memoryview(whole)[:end])] == [0]


def test_a_batch_length_that_cannot_be_is_refused() -> None:
    batch = bytearray(build_batch(RECORDS[:1]))
    struct.pack_into(">i", batch, 8, -5)
    with pytest.raises(MalformedRecordsError):
        list(iter_batch_headers(batch))


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5])
def test_garbage_in_a_codec_is_malformed(codec: int) -> None:
    batch = bytearray(build_batch(RECORDS[:1]))
    struct.pack_into(">h", batch, 21, codec)
    with pytest.raises(MalformedRecordsError):
        list(iter_records(bytes(batch)))


def test_flags() -> None:
    batch = build_batch(
        RECORDS, producer_id=5, producer_epoch=1, base_sequence=2**31 - 2, is_transactional=True
    )
    header = parse_batch_header(batch)
    assert header.is_transactional
    assert not header.is_control
    assert header.last_sequence == 1, "sequences wrap behind 2**31 - 1"
