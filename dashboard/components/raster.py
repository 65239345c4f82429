"""A picture with one pixel for each cell of a table, made here: the browser only stretches it."""

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_EIGHT_BIT_RGBA: Final = (8, 6, 0, 0, 0)


def picture_of(shares: NDArray[np.float64], colors: Sequence[str]) -> str:
    """A ``data:`` address of ``shares`` (0 to 1, by row and column) in ``colors`` (``#rrggbb``,
    evenly spaced from 0 to 1); NaN is left clear."""
    stops = np.array([[int(it[at : at + 2], 16) for at in (1, 3, 5)] for it in colors])
    places = np.linspace(0, 1, len(stops))
    known = ~np.isnan(shares)
    pixels = np.zeros((*shares.shape, 4), np.uint8)
    for channel in range(3):
        pixels[known, channel] = np.interp(shares[known], places, stops[:, channel]).round()
    pixels[known, 3] = 255
    return f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}"


def png(pixels: NDArray[Any]) -> bytes:
    """``pixels``: height x width x RGBA, one byte each."""
    height, width, _ = pixels.shape
    # Each line begins with how it is filtered: not at all.
    lines = np.insert(pixels.reshape(height, width * 4), 0, 0, axis=1)
    head = struct.pack(">2I5B", width, height, *_EIGHT_BIT_RGBA)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return _SIGNATURE + b"".join(map(_chunk, *zip(*chunks, strict=True)))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
