"""Formats 0 and 1 as Kafka 2.8 writes them; and no bytes that are opened without a bound."""

import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from broker.protocol import compression
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.message_formats import crc_is_valid, iter_batches, open_batch
from broker.protocol.records import NewRecord, Record, build_batch, iter_records

GOLDEN = Path(__file__).parents[3] / "golden" / "message_sets.txt"
SETS = [line.split() for line in GOLDEN.read_text().splitlines()[1:]]
FIRST_MS = 1_700_000_000_000


def records_of(data: bytes) -> list[Record]:
    found: list[Record] = []
    for header, start in iter_batches(data):
        batch = memoryview(data)[start : start + header.size_bytes]
        assert crc_is_valid(batch, header)
        told, records = open_batch(batch, header)
        opened = list(records)
        assert (told.base_offset, told.last_offset) == (opened[0].offset, opened[-1].offset)
        assert told.records_count == len(opened)
        found += opened
    return found


@pytest.mark.parametrize(("magic", "codec", "data"), SETS, ids=lambda it: it[:24])
def test_message_sets_of_kafka_are_read(magic: str, codec: str, data: str) -> None:
    found = records_of(bytes.fromhex(data))
    if codec == "gzip-append-time":
        assert [(r.offset, r.timestamp) for r in found] == [
            (2_000, 1_800_000_000_000),
            (2_001, 1_800_000_000_000),
        ]
        return
    times = [-1, -1, -1] if magic == "0" else [FIRST_MS, FIRST_MS + 1, FIRST_MS + 2]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found] == [
        (1_000, times[0], b"k0", b"first"),
        (1_001, times[1], None, b"second"),
        (1_002, times[2], b"k2", None),
    ]


def test_a_log_of_all_formats_is_walked() -> None:
    old = [bytes.fromhex(data) for _, codec, data in SETS if codec in ("none", "lz4")]
    new = build_batch([NewRecord(value=b"new", timestamp=5)], base_offset=1_003, codec=4)
    found = records_of(b"".join([*old, new]))
    assert len(found) == 13
    assert found[-1].value == b"new"


@pytest.mark.parametrize("magic", ["0", "1"])
def test_a_message_in_another_one_is_not_opened_twice(magic: str) -> None:
    """A compressed message that holds compressed ones would multiply without end."""
    (inner,) = [bytes.fromhex(d) for m, codec, d in SETS if (m, codec) == (magic, "gzip")]
    plain = bytes(cramjam.gzip.compress(inner))
    head = struct.pack(">bb", int(magic), 1) + (b"" if magic == "0" else struct.pack(">q", 1))
    body = head + struct.pack(">ii", -1, len(plain)) + plain
    wrapper = struct.pack(">qiI", 9, len(body) + 4, zlib.crc32(body)) + body
    ((header, _),) = iter_batches(wrapper)
    with pytest.raises(MalformedRecordsError, match="another format or codec"):
        open_batch(wrapper, header)


def test_an_unknown_format_is_named_and_passed() -> None:
    strange = struct.pack(">qiIb", 5, 10, 0, 9) + bytes(5)
    headers = list(iter_batches(strange + strange))
    assert [(header.base_offset, position) for header, position in headers] == [(5, 0), (5, 22)]
    with pytest.raises(MalformedRecordsError, match="format 9 is unknown"):
        open_batch(strange, headers[0][0])


BOMBS: dict[int, Callable[[bytes], cramjam.Buffer | bytes]] = {
    compression.GZIP: cramjam.gzip.compress,
    compression.LZ4: cramjam.lz4.compress,
    compression.ZSTD: cramjam.zstd.compress,
    compression.SNAPPY: lambda _: b"\xff\xff\xff\xff\x0f" + bytes(20),
}


@pytest.mark.parametrize("codec", BOMBS)
def test_what_would_be_too_large_when_opened_is_refused(codec: int) -> None:
    bomb = bytes(BOMBS[codec](bytes(200 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(MalformedRecordsError, match="more than 128 MiB when opened"):
            compression.decompress(codec, bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300 << 20


def test_a_record_cannot_be_longer_than_it_says() -> None:
    batch = bytearray(build_batch([NewRecord(value=b"x" * 50, timestamp=1) for _ in range(3)]))
    batch[61] = 20  # the first record claims 10 bytes and holds 50
    with pytest.raises(MalformedRecordsError, match="runs over the record"):
        list(iter_records(bytes(batch)))
