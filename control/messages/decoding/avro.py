"""Reads Avro's binary encoding into JSON's types, within bounds of depth and values.

Libraries trust the writer: a count of 2³¹ nulls fits into twelve bytes, and a recursive type into
a crash. What no calendar, number or text can hold stays as its field has it: a number, or base64.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from control.messages.decoding.formats import DEPTH_MAX, VALUES_MAX, BoundError, jsonable

_NUMBER_BITS_MAX: Final = 63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = timedelta(days=1)


@dataclass(slots=True)
class _Source:
    """The bytes of one value, and what may still be read of them."""

    data: bytes
    at: int
    values_left: int = VALUES_MAX
    depth: int = 0

    def enter(self, count: int) -> None:
        """A record, array or map begins, with so many values."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise BoundError.of_depth()
        self.spend(count)

    def spend(self, count: int) -> None:
        """So many values come."""
        self.values_left -= count
        if self.values_left < 0:
            raise BoundError.of_values()

    def number(self) -> int:
        """A whole number, zigzag coded."""
        data, at = self.data, self.at
        number = bits = 0
        while (byte := data[at]) >= 0x80:
            number |= (byte & 0x7F) << bits
            at += 1
            bits += 7
            if bits > _NUMBER_BITS_MAX:
                raise ValueError("a number of more than ten bytes")
        number |= byte << bits
        self.at = at + 1
        return (number >> 1) ^ -(number & 1)

    def take(self, size: int) -> bytes:
        """So many bytes."""
        taken = self.data[self.at : self.at + size]
        if size < 0 or len(taken) < size:
            raise EOFError("it ends too early")
        self.at += size
        return taken


_Reader = Callable[[_Source], Any]


class AvroReader:
    """Reads the values of one schema, as ``fastavro.parse_schema`` gives it."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self.name = str(schema.get("name", "")) if isinstance(schema, dict) else ""
        self._named = named
        self._readers: dict[str, _Reader] = {}
        self._read = self._reader(schema)

    def document(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value that begins there, and where it ends.

        :raises ValueError: the bytes are none, or go beyond a bound.
        :raises EOFError: they end too early.
        """
        source = _Source(data, at)
        try:
            return self._read(source), source.at
        except IndexError:
            raise EOFError("it ends too early") from None

    def _reader(self, schema: Any) -> _Reader:
        if isinstance(schema, list):
            return _union([self._reader(each) for each in schema])
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _PRIMITIVES[schema]
            return self._readers.get(schema) or self._reader(self._named[schema])
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema)
        if kind in ("array", "map"):
            items = self._reader(schema["items" if kind == "array" else "values"])
            return _array(items) if kind == "array" else _map(items)
        if kind in ("enum", "fixed"):
            made = _enum(schema["symbols"]) if kind == "enum" else _fixed(schema)
            self._readers[schema["name"]] = made
            return made
        convert = _LOGICAL.get((kind, schema.get("logicalType", "")))
        if kind == "bytes" and schema.get("logicalType") == "decimal":
            return _converted(_raw, _decimal(schema))
        return self._reader(kind) if convert is None else _converted(self._reader(kind), convert)

    def _record(self, schema: Mapping[str, Any]) -> _Reader:
        fields: list[tuple[str, _Reader]] = []

        def read(source: _Source) -> dict[str, Any]:
            source.enter(len(fields))
            found = {name: reader(source) for name, reader in fields}
            source.depth -= 1
            return found

        self._readers[schema["name"]] = read  # its own fields may be of this type
        fields += [(each["name"], self._reader(each["type"])) for each in schema["fields"]]
        return read


def _blocks(source: _Source) -> int:
    """How many items the next block holds; 0: there is none."""
    count = source.number()
    if count < 0:
        source.number()
    source.spend(abs(count))
    return abs(count)


def _array(item: _Reader) -> _Reader:
    def read(source: _Source) -> list[Any]:
        source.enter(0)
        found: list[Any] = []
        while count := _blocks(source):
            found += [item(source) for _ in range(count)]
        source.depth -= 1
        return found

    return read


def _map(item: _Reader) -> _Reader:
    def read(source: _Source) -> dict[str, Any]:
        source.enter(0)
        found: dict[str, Any] = {}
        while count := _blocks(source):
            for _ in range(count):
                name = source.take(source.number()).decode(errors="backslashreplace")
                found[name] = item(source)
        source.depth -= 1
        return found

    return read


def _union(branches: Sequence[_Reader]) -> _Reader:
    def read(source: _Source) -> Any:
        number = source.number()
        if not 0 <= number < len(branches):
            raise ValueError(f"a union of {len(branches)} types has none of number {number}")
        return branches[number](source)

    return read


def _enum(symbols: Sequence[str]) -> _Reader:
    def read(source: _Source) -> str:
        number = source.number()
        if not 0 <= number < len(symbols):
            raise ValueError(f"an enum of {len(symbols)} symbols has none of number {number}")
        return symbols[number]

    return read


def _fixed(schema: Mapping[str, Any]) -> _Reader:
    size = schema["size"]
    match schema.get("logicalType"):
        case "decimal":
            return _converted(lambda source: source.take(size), _decimal(schema))
        case "uuid":
            return _converted(lambda source: source.take(size), lambda raw: str(UUID(bytes=raw)))
    return lambda source: jsonable(source.take(size))


def _raw(source: _Source) -> bytes:
    return source.take(source.number())


def _bool(source: _Source) -> bool:
    return source.take(1) != b"\0"


def _float(layout: struct.Struct) -> _Reader:
    return lambda source: jsonable(layout.unpack(source.take(layout.size))[0])


def _decimal(schema: Mapping[str, Any]) -> Callable[[bytes], str]:
    scale = schema.get("scale", 0)

    def convert(raw: bytes) -> str:
        number = int.from_bytes(raw, signed=True)
        digits = tuple(map(int, str(abs(number))))
        return str(Decimal((int(number < 0), digits, -scale)))

    return convert


def _converted(read: _Reader, convert: Callable[[Any], Any]) -> _Reader:
    """As the logical type has it; where that cannot be, the field alone is raw."""

    def converted(source: _Source) -> Any:
        raw = read(source)
        try:
            return convert(raw)
        except (ValueError, ArithmeticError):
            return jsonable(raw)

    return converted


def _date(days: int) -> str:
    return (date(1970, 1, 1) + days * _DAY).isoformat()


def _moment(unit: timedelta, zone: Any) -> Callable[[int], str]:
    return lambda count: (_EPOCH + count * unit).replace(tzinfo=zone).isoformat()


def _clock(unit: timedelta) -> Callable[[int], str]:
    def convert(count: int) -> str:
        if not timedelta(0) <= count * unit < _DAY:
            raise ValueError("no time of a day")
        return (_EPOCH + count * unit).time().isoformat()

    return convert


_PRIMITIVES: Final[Mapping[str, _Reader]] = {
    "null": lambda _: None,
    "boolean": _bool,
    "int": _Source.number,
    "long": _Source.number,
    "float": _float(struct.Struct("<f")),
    "double": _float(struct.Struct("<d")),
    "bytes": lambda source: jsonable(_raw(source)),
    "string": lambda source: jsonable(_raw(source)),
}
_MILLISECOND: Final = timedelta(milliseconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_LOGICAL: Final[Mapping[tuple[str, str], Callable[[int], str]]] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _clock(_MILLISECOND),
    ("long", "time-micros"): _clock(_MICROSECOND),
    ("long", "timestamp-millis"): _moment(_MILLISECOND, UTC),
    ("long", "timestamp-micros"): _moment(_MICROSECOND, UTC),
    ("long", "local-timestamp-millis"): _moment(_MILLISECOND, None),
    ("long", "local-timestamp-micros"): _moment(_MICROSECOND, None),
}
