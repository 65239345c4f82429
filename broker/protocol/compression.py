"""Kafka's compression codecs, opened only where a batch must be read.

Codec numbers are attributes bits 0-2 of a batch: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
Snappy comes in xerial's framing (Java, librdkafka) or raw (old clients); LZ4 must be frames of
independent blocks, which is all that Kafka's Java reader takes, so they are framed here.

Nothing is opened beyond `PLAIN_BYTES_MAX`: some bytes of zeros can claim to be gigabytes.
"""

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

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
_LZ4_FAST_LEVEL: Final = 9
_GZIP_DEFAULT_LEVEL: Final = -1

PLAIN_BYTES_MAX: Final = 128 << 20
"""A batch that is larger when opened is refused: five times the largest records that are met."""
_FIRST_GUESS: Final = 8
"""How many times its compressed size a batch is taken to be at first."""
_GUESS_BYTES_MIN: Final = 64 << 10
_NO_ROOM: Final = "failed to write whole buffer"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_GZIP_STEP_BYTES: Final = 16 << 10
"""Given to zlib at once: it copies the rest of a step behind each member."""

Transform = Callable[[Any], bytes]


def compress(codec: int, data: bytes, level: int | None = None) -> bytes:
    """The records section of a batch in this codec; `level` as in Kafka's compression.*.level.

    :raises MalformedRecordsError: unknown codec.
    """
    if codec == NONE:
        return data
    if codec not in _COMPRESSORS:
        raise _unknown(codec)
    return _COMPRESSORS[codec](data, level)


def decompress(codec: int, data: bytes | memoryview) -> bytes | memoryview:
    """The plain records of a batch.

    :raises MalformedRecordsError: unknown codec, bytes that are not of this codec, or more than
        `PLAIN_BYTES_MAX` of them.
    """
    if codec == NONE:
        return data
    if codec not in _DECOMPRESSORS:
        raise _unknown(codec)
    decompressor = _DECOMPRESSORS[codec]
    try:
        return decompressor(data)
    except (cramjam.DecompressionError, struct.error, zlib.error) as error:
        story = f"{CODEC_NAMES[codec]} data cannot be decompressed: {error}"
        raise MalformedRecordsError(story) from error


def codec_name(codec: int) -> str:
    """A codec in Kafka's word, or its number where Kafka has none."""
    return CODEC_NAMES.get(codec, f"unknown ({codec})")


def _unknown(codec: int) -> MalformedRecordsError:
    return MalformedRecordsError(f"compression codec {codec} is unknown")


def _compress_gzip(data: bytes, level: int | None) -> bytes:
    is_chosen = level is not None and level != _GZIP_DEFAULT_LEVEL
    return bytes(cramjam.gzip.compress(data, level=level if is_chosen else None))


def _compress_zstd(data: bytes, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=level))


def _compress_snappy(data: bytes, _level: int | None) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes | memoryview) -> bytes:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _snappy_block(data, PLAIN_BYTES_MAX)
    parts = []
    position = len(_XERIAL_HEADER)
    if position > len(data):
        raise MalformedRecordsError("snappy data cannot be decompressed: its header is cut off")
    left_bytes = PLAIN_BYTES_MAX
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise MalformedRecordsError(f"a snappy block of {size} bytes runs over the end")
        parts.append(_snappy_block(data[position : position + size], left_bytes))
        left_bytes -= len(parts[-1])
        position += size
    return b"".join(parts)


def _snappy_block(data: bytes | memoryview, bytes_max: int) -> bytes:
    """A block says its size first, and that much would be reserved for it."""
    if cramjam.snappy.decompress_raw_len(data) > bytes_max:
        raise _too_large()
    return bytes(cramjam.snappy.decompress_raw(data))


def _decompress_gzip(data: bytes | memoryview) -> bytes:
    """All members; what follows the last is ignored, as Java's reader does."""
    parts = []
    position, left_bytes = 0, PLAIN_BYTES_MAX
    member = zlib.decompressobj(_GZIP_WINDOW)
    while position < len(data):
        step = data[position : position + _GZIP_STEP_BYTES]
        parts.append(member.decompress(step, left_bytes + 1))
        left_bytes -= len(parts[-1])
        if left_bytes < 0:
            raise _too_large()
        position += len(step) - len(member.unused_data)
        if member.eof:
            if bytes(data[position : position + 2]) != _GZIP_MAGIC:
                return b"".join(parts)
            member = zlib.decompressobj(_GZIP_WINDOW)
    raise MalformedRecordsError("gzip data cannot be decompressed: it ends too early")


def _bounded(decompress_into: Callable[[Any, bytearray], int]) -> Transform:
    """A decompressor that tries ever larger buffers, up to the bound: what a frame says of its
    own size may be missing or a lie."""

    def decompress_bounded(data: bytes | memoryview) -> bytes:
        size = max(_GUESS_BYTES_MIN, _FIRST_GUESS * len(data))
        while True:
            plain = bytearray(min(size, PLAIN_BYTES_MAX))
            try:
                return bytes(memoryview(plain)[: decompress_into(data, plain)])
            except cramjam.DecompressionError as error:
                if str(error) != _NO_ROOM:
                    raise
            if size >= PLAIN_BYTES_MAX:
                raise _too_large()
            size *= 4

    return decompress_bounded


def _too_large() -> MalformedRecordsError:
    return MalformedRecordsError(f"a batch of more than {PLAIN_BYTES_MAX >> 20} MiB when opened")


def _compress_lz4(data: bytes, level: int | None) -> bytes:
    """At Kafka's default level its fast compressor is used, at others the high compression."""
    chosen: dict[str, Any] = {}
    if level not in (None, _LZ4_FAST_LEVEL):
        chosen = {"mode": "high_compression", "compression": level}
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False, **chosen))
        if len(block) < len(plain):
            parts += (struct.pack("<I", len(block)), block)
        else:
            parts += (struct.pack("<I", len(plain) | _LZ4_STORED), plain)
    parts.append(b"\x00\x00\x00\x00")
    return b"".join(parts)


_COMPRESSORS: Mapping[int, Callable[[bytes, int | None], bytes]] = {
    GZIP: _compress_gzip,
    SNAPPY: _compress_snappy,
    LZ4: _compress_lz4,
    ZSTD: _compress_zstd,
}
_DECOMPRESSORS: Mapping[int, Transform] = {
    GZIP: _decompress_gzip,
    SNAPPY: _decompress_snappy,
    LZ4: _bounded(cramjam.lz4.decompress_into),
    ZSTD: _bounded(cramjam.zstd.decompress_into),
}
