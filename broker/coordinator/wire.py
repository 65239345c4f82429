"""The few primitive types of Kafka's non-flexible schemas, for records and consumer metadata."""

import struct

from broker.coordinator.errors import RecordFormatError


class Writer:
    """Appends big-endian primitives; strings and bytes carry int16 and int32 lengths."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def int16(self, value: int) -> "Writer":
        self._parts.append(struct.pack(">h", value))
        return self

    def int32(self, value: int) -> "Writer":
        self._parts.append(struct.pack(">i", value))
        return self

    def int64(self, value: int) -> "Writer":
        self._parts.append(struct.pack(">q", value))
        return self

    def string(self, value: str | None) -> "Writer":
        """A nullable string: length -1 is null."""
        if value is None:
            return self.int16(-1)
        encoded = value.encode()
        self.int16(len(encoded))._parts.append(encoded)
        return self

    def blob(self, value: bytes) -> "Writer":
        self.int32(len(value))._parts.append(value)
        return self

    def to_bytes(self) -> bytes:
        return b"".join(self._parts)


class Reader:
    """Reads what `Writer` wrote; everything outside the bytes raises RecordFormatError."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int16(self) -> int:
        return int.from_bytes(self._take(2), signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), signed=True)

    def nullable_string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._text(length)

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise RecordFormatError(f"a string that is not UTF-8: {error}") from error

    def compact_string(self) -> str | None:
        """A string of the flexible encoding: a varint of its length + 1, 0 for null."""
        length = shift = 0
        more = True
        while more and shift <= 28:
            byte = self._take(1)[0]
            length |= (byte & 0x7F) << shift
            more, shift = byte >= 0x80, shift + 7
        return None if length == 0 else self._text(length - 1)

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise RecordFormatError("null where a string is required")
        return value

    def blob(self) -> bytes:
        """Bytes; null (-1) reads as empty."""
        return self._take(max(self.int32(), 0))

    def count(self) -> int:
        """Length of an array; null (-1) reads as 0, more than the bytes left cannot be."""
        count = max(self.int32(), 0)
        if count > len(self._data) - self._position:
            raise RecordFormatError(f"an array of {count} entries is longer than its record")
        return count

    def _take(self, size_bytes: int) -> bytes:
        end = self._position + size_bytes
        if end > len(self._data):
            raise RecordFormatError(f"{len(self._data)} bytes end before position {end}")
        taken = self._data[self._position : end]
        self._position = end
        return taken
