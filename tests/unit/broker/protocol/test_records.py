"""Batches that we build are read back, and their headers say what is in them."""

import struct
import time
from typing import Final

import pytest

from broker.protocol.compression import GZIP, SNAPPY, XERIAL_MAGIC, compress, decompress
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
from broker.protocol.rewrite import rewrite_batch, scan_records
from broker.protocol.varint import encode_varint

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


BLANK: Final = b"\x00\x00\x00\x01\x01\x00"
"""Attributes, deltas of time and offset, no key, no value, no headers."""


def _record(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


@pytest.mark.parametrize(
    ("plain", "count"),
    [
        pytest.param(_record(BLANK), -1, id="a negative count"),
        pytest.param(_record(BLANK), 2, id="fewer records than counted"),
        pytest.param(_record(BLANK) * 2, 1, id="more records than counted"),
        pytest.param(_record(BLANK + b"junk"), 1, id="more bytes than the record has"),
        pytest.param(_record(BLANK[:-1] + b"\x01"), 1, id="a negative number of headers"),
        pytest.param(_record(BLANK[:-1] + b"\x02\x01\x01"), 1, id="a header without a name"),
        pytest.param(_record(BLANK[:1] + b"\xff" * 10 + b"\x00" + BLANK[2:]), 1, id="varlong"),
        pytest.param(_record(BLANK[:2] + b"\xff" * 5 + b"\x00" + BLANK[3:]), 1, id="varint"),
    ],
)
def test_records_that_do_not_follow_the_format_are_malformed(plain: bytes, count: int) -> None:
    batch = bytearray(build_batch(RECORDS[:1])[:HEADER_BYTES]) + plain
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(MalformedRecordsError):
        list(iter_records(bytes(batch)))


def test_a_time_beyond_64_bits_wraps_as_in_java() -> None:
    """Such a batch comes of a faulty client; compaction, which moves times, must survive it."""
    plain = _record(BLANK[:1] + encode_varint(2**63 - 1) + BLANK[2:])
    batch = bytearray(build_batch(RECORDS[:1])[:HEADER_BYTES]) + plain
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">qq", batch, 27, 5, 5)
    (record,) = iter_records(bytes(batch))
    assert record.timestamp == -(2**63) + 4
    spans = list(scan_records(plain, 1))
    header = parse_batch_header(batch)
    for horizon_ms in (None, -(2**62)):
        rewritten = rewrite_batch(header, plain, spans, horizon_ms=horizon_ms)
        assert [it.timestamp for it in iter_records(rewritten)] == [record.timestamp]


def test_many_empty_members_of_gzip_cost_little() -> None:
    """Two megabytes: to copy what follows each, for each, would take ten seconds."""
    member = compress(GZIP, b"")
    began_s = time.process_time()
    assert decompress(GZIP, member * (2_000_000 // len(member)) + compress(GZIP, b"x")) == b"x"
    assert time.process_time() - began_s < 4


def test_a_snappy_frame_without_its_header_is_malformed() -> None:
    with pytest.raises(MalformedRecordsError):
        decompress(SNAPPY, XERIAL_MAGIC + b"\x00")


def test_flags() -> None:
    batch = build_batch(
        RECORDS, producer_id=5, producer_epoch=1, base_sequence=2**31 - 2, is_transactional=True
    )
    header = parse_batch_header(batch)
    assert header.is_transactional
    assert not header.is_control
    assert header.last_sequence == 1, "sequences wrap behind 2**31 - 1"
