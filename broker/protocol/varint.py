"""Zigzag varints of the record format, 32 and 64 bits wide (Kafka's ByteUtils)."""

from broker.protocol.errors import MalformedRecordsError

VARLONG_BYTES_MAX = 10
_BITS_64 = 0xFFFFFFFFFFFFFFFF


def read_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag varint: (value, position behind it).

    :raises MalformedRecordsError: a value beyond 32 bits, or the buffer ends first.
    """
    value, position = read_varlong(buffer, position)
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return value, position
    raise MalformedRecordsError(f"{value} in place of a number of 32 bits")


def read_varlong(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag varlong: (value, position behind it); bits beyond 64 are lost, as in Java.

    :raises MalformedRecordsError: more than ten bytes, or the buffer ends first.
    """
    result = shift = 0
    try:
        while True:
            byte = buffer[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                result &= _BITS_64
                return (result >> 1) ^ -(result & 1), position
            shift += 7
            if shift >= 7 * VARLONG_BYTES_MAX:
                raise MalformedRecordsError("a varint of more than ten bytes")
    except IndexError:
        raise MalformedRecordsError("a varint runs over the end of the records") from None


def to_int64(value: int) -> int:
    """A sum of two numbers of 64 bits as Java has it: it wraps."""
    return (value + 0x8000000000000000 & _BITS_64) - 0x8000000000000000


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
