"""The few primitive types of Kafka's non-flexible schemas, for records and consumer metadata."""

import struct

from broker.coordinator.errors import RecordFormatError
from broker.protocol.hot.cursor import Cursor


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


class Reader(Cursor):
    """Reads what `Writer` wrote; everything outside the bytes raises RecordFormatError."""

    error = RecordFormatError

    def __init__(self, data: bytes) -> None:
        super().__init__(memoryview(data))

    def blob(self) -> bytes:
        """Bytes; null (-1) reads as empty."""
        return bytes(self.take(max(self.i32(), 0)))
