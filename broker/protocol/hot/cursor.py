"""Reading Kafka's primitive types in place, from a frame or a record.

Two encodings of strings, bytes and arrays exist: fixed-width lengths in the older versions,
and "compact" ones (unsigned varint of length + 1, 0 meaning null) in the flexible versions.
"""

import struct
from typing import ClassVar, Final

from broker.protocol.errors import MalformedRequestError

_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")
_VARINT_BYTES_MAX: Final = 5


class Cursor:
    """A position in a frame that only moves forward.

    Every method raises `error` when the frame ends too early.
    """

    __slots__ = ("_end", "_view", "position")
    error: ClassVar[type[Exception]] = MalformedRequestError

    def __init__(self, view: memoryview, position: int = 0) -> None:
        self._view = view
        self._end = len(view)
        self.position = position

    def take(self, size_bytes: int) -> memoryview:
        """A view of the next bytes."""
        start = self.position
        end = start + size_bytes
        if size_bytes < 0 or end > self._end:
            raise self.error(f"{size_bytes} bytes at {start} exceed {self._end}")
        self.position = end
        return self._view[start:end]

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """Fixed-width fields in one step."""
        start = self.position
        if start + layout.size > self._end:
            raise self.error(f"{layout.size} bytes at {start} exceed {self._end}")
        self.position = start + layout.size
        return layout.unpack_from(self._view, start)

    def i16(self) -> int:
        """A big-endian int16."""
        return self.unpack(_I16)[0]

    def i32(self) -> int:
        """A big-endian int32."""
        return self.unpack(_I32)[0]

    def i64(self) -> int:
        """A big-endian int64."""
        return self.unpack(_I64)[0]

    def uvarint(self) -> int:
        """An unsigned varint of at most five bytes."""
        start = self.position
        if start < self._end and self._view[start] < 0x80:  # as nearly all are
            self.position = start + 1
            return self._view[start]
        result = shift = 0
        for _ in range(_VARINT_BYTES_MAX):
            if self.position >= self._end:
                raise self.error(f"the frame ends inside a varint at {self._end}")
            byte = self._view[self.position]
            self.position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
        raise self.error(f"a varint longer than five bytes ends at {self.position}")

    def length(self, is_flexible: bool) -> int:
        """The length of an array or bytes; -1 means null."""
        return self.uvarint() - 1 if is_flexible else self.i32()

    def count(self, is_flexible: bool) -> int:
        """The length of an array, where null counts as empty; bounded by the frame."""
        count = self.length(is_flexible)
        if count > self._end - self.position:
            raise self.error(f"an array of {count} exceeds the frame")
        return max(count, 0)

    def nullable_string(self, is_flexible: bool) -> str | None:
        """A UTF-8 string or null."""
        size = self.uvarint() - 1 if is_flexible else self.i16()
        if size < 0:
            return None
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError as error:
            raise self.error(f"a string is not UTF-8: {error}") from error

    def string(self, is_flexible: bool) -> str:
        """A UTF-8 string that must be there."""
        text = self.nullable_string(is_flexible)
        if text is None:
            raise self.error("a string is null")
        return text

    def uuid(self) -> bytes:
        """The 16 bytes of a UUID."""
        return bytes(self.take(16))

    def skip_tags(self) -> None:
        """Tagged fields that we do not read are skipped (KIP-482)."""
        for _ in range(self.uvarint()):
            self.uvarint()
            self.take(self.uvarint())


def encode_uvarint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_length(value: int, is_flexible: bool) -> bytes:
    """The length of an array or bytes."""
    return encode_uvarint(value + 1) if is_flexible else _I32.pack(value)


def encode_string(text: str | None, is_flexible: bool) -> bytes:
    """A nullable string."""
    if text is None:
        return b"\x00" if is_flexible else b"\xff\xff"
    encoded = text.encode()
    if is_flexible:
        return encode_uvarint(len(encoded) + 1) + encoded
    return _I16.pack(len(encoded)) + encoded


def encode_tagged(tag: int, payload: bytes | bytearray) -> bytes:
    """One tagged field, without the count of tags before it."""
    return encode_uvarint(tag) + encode_uvarint(len(payload)) + payload
