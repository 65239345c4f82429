"""Kafka's compression codecs, opened only where a batch must be read.

Codec numbers are attributes bits 0-2 of a batch: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
Snappy comes in xerial's framing (Java, librdkafka) or raw (old clients); LZ4 must be frames of
independent blocks, which is all that Kafka's Java reader takes, so they are framed here.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

import cramjam

from broker.protocol.errors import MalformedRecordsError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES: Mapping[int, str] = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024

# Magic, FLG 0x60 (version 1, independent blocks), BD 0x70 (blocks up to 4 MiB), header checksum.
_LZ4_HEADER = bytes.fromhex("04224d18607073")
_LZ4_BLOCK_BYTES = 4 * 1024 * 1024
_LZ4_STORED = 0x80000000

Transform = Callable[[Any], bytes]


def compress(codec: int, data: bytes) -> bytes:
    """The records section of a batch in this codec.

    :raises MalformedRecordsError: unknown codec.
    """
    if codec == NONE:
        return data
    return _pick(_COMPRESSORS, codec)(data)


def decompress(codec: int, data: bytes | memoryview) -> bytes | memoryview:
    """The plain records of a batch.

    :raises MalformedRecordsError: unknown codec, or bytes that are not of this codec.
    """
    if codec == NONE:
        return data
    decompressor = _pick(_DECOMPRESSORS, codec)
    try:
        return decompressor(data)
    except (cramjam.DecompressionError, struct.error) as error:
        story = f"{CODEC_NAMES[codec]} data cannot be decompressed: {error}"
        raise MalformedRecordsError(story) from error


def _pick(table: Mapping[int, Transform], codec: int) -> Transform:
    if codec not in table:
        raise MalformedRecordsError(f"compression codec {codec} is unknown")
    return table[codec]


def _compress_snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes | memoryview) -> bytes:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return bytes(cramjam.snappy.decompress_raw(data))
    parts = []
    position = len(_XERIAL_HEADER)
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise MalformedRecordsError(f"a snappy block of {size} bytes runs over the end")
        parts.append(bytes(cramjam.snappy.decompress_raw(data[position : position + size])))
        position += size
    return b"".join(parts)


def _compress_lz4(data: bytes) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += (struct.pack("<I", len(block)), block)
        else:
            parts += (struct.pack("<I", len(plain) | _LZ4_STORED), plain)
    parts.append(b"\x00\x00\x00\x00")
    return b"".join(parts)


_COMPRESSORS: Mapping[int, Transform] = {
    GZIP: lambda data: bytes(cramjam.gzip.compress(data)),
    SNAPPY: _compress_snappy,
    LZ4: _compress_lz4,
    ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
}
_DECOMPRESSORS: Mapping[int, Transform] = {
    GZIP: lambda data: bytes(cramjam.gzip.decompress(data)),
    SNAPPY: _decompress_snappy,
    LZ4: lambda data: bytes(cramjam.lz4.decompress(data)),
    ZSTD: lambda data: bytes(cramjam.zstd.decompress(data)),
}
