"""Zigzag varints of the record format (Kafka's ByteUtils)."""

from broker.protocol.errors import MalformedRecordsError

VARLONG_BYTES_MAX = 10


def read_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag varint or varlong: (value, position behind it).

    :raises MalformedRecordsError: more than ten bytes, or the buffer ends first.
    """
    result = shift = 0
    try:
        while True:
            byte = buffer[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1), position
            shift += 7
            if shift >= 7 * VARLONG_BYTES_MAX:
                raise MalformedRecordsError("a varint of more than ten bytes")
    except IndexError:
        raise MalformedRecordsError("a varint runs over the end of the records") from None


def encode_varint(value: int) -> bytes:
    """The zigzag varint of a signed number of at most 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 0x80:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))
