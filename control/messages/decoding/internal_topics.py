"""Records of Kafka's internal topics, as Kafka's own formatters show them.

Keys begin with the number of their type, values with their version, both int16. The schemas are
Kafka's own (``scripts/internal_records.py`` takes them from a release).
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Final

_INT16: Final = struct.Struct(">h")
_NUMBERS: Final[Mapping[str, struct.Struct]] = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": _INT16,
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}
_VARINT_BYTES_MAX: Final = 5
_NOT_A_DOCUMENT: Final = "it does not end where its schema ends"
INTERNAL_TOPICS: Final = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state")
)


class InternalRecordError(ValueError):
    """Bytes that no schema of the topic fits."""


def decode_key(topic: str, data: bytes) -> dict[str, Any]:
    """``{"type": 1, "name": "OffsetCommitKey", "data": {…}}``.

    :raises InternalRecordError: a type that is not known, or other bytes.
    """
    number = _leading_number(data)
    schema = _schemas()[topic]["key"].get(str(number))
    if schema is None:
        raise InternalRecordError(f"{topic} has no records of type {number}")
    return {"type": number, "name": schema["name"], "data": _body(schema, 0, data)}


def decode_value(topic: str, key: bytes | None, data: bytes) -> dict[str, Any]:
    """``{"version": 3, "name": "OffsetCommitValue", "data": {…}}``; the key says which schema.

    :raises InternalRecordError: a type or version that is not known, or other bytes.
    """
    if key is None:
        raise InternalRecordError("without a key nobody knows the type of the value")
    number, version = _leading_number(key), _leading_number(data)
    schema = _schemas()[topic]["value"].get(str(number))
    if schema is None:
        raise InternalRecordError(f"{topic} has no records of type {number}")
    if not _holds(schema["validVersions"], version):
        words = f"{schema['name']} has no version {version}, only {schema['validVersions']}"
        raise InternalRecordError(words)
    return {"version": version, "name": schema["name"], "data": _body(schema, version, data)}


def _leading_number(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise InternalRecordError("fewer than two bytes")
    number: int = _INT16.unpack_from(data)[0]
    return number


@lru_cache(maxsize=1)
def _schemas() -> Any:
    file = resources.files("control.messages.decoding").joinpath("internal_records.json")
    return json.loads(file.read_text("utf-8"))


def _body(schema: Mapping[str, Any], version: int, data: bytes) -> dict[str, Any]:
    reader = _Reader(data, version, is_flexible=_holds(schema["flexibleVersions"], version))
    found = reader.structure(schema["fields"])
    if reader.left:
        raise InternalRecordError(_NOT_A_DOCUMENT)
    return found


def _holds(versions: str | None, version: int) -> bool:
    """Whether ``3``, ``0-4`` or ``2+`` holds a version; ``none`` and null hold none."""
    if not versions or versions == "none":
        return False
    first, dash, last = versions.partition("-")
    if first.endswith("+"):
        return version >= int(first[:-1])
    return int(first) <= version <= int(last if dash else first)


class _Reader:
    """Reads one record from its bytes; each read stays within them."""

    def __init__(self, data: bytes, version: int, *, is_flexible: bool) -> None:
        self._data = data
        self._at = _INT16.size
        self._version = version
        self._is_flexible = is_flexible

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at

    def structure(self, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """All fields of this version, in their order; tagged ones only where they are written."""
        found: dict[str, Any] = {}
        tagged: dict[int, Mapping[str, Any]] = {}
        for field in fields:
            if _holds(field.get("taggedVersions"), self._version):
                tagged[field["tag"]] = field
            elif _holds(field.get("versions"), self._version):
                found[_camel(field["name"])] = self._field(field)
        if self._is_flexible:
            self._read_tags(tagged, found)
        return found

    def _read_tags(self, tagged: Mapping[int, Mapping[str, Any]], found: dict[str, Any]) -> None:
        for _ in range(self._varint()):
            tag, size = self._varint(), self._varint()
            end = self._at + size
            if end > len(self._data):
                raise InternalRecordError(f"tag {tag} is cut short")
            if tag in tagged:
                found[_camel(tagged[tag]["name"])] = self._field(tagged[tag], is_tagged=True)
                if self._at != end:
                    raise InternalRecordError(f"tag {tag}: {_NOT_A_DOCUMENT}")
            self._at = end

    def _field(self, field: Mapping[str, Any], *, is_tagged: bool = False) -> Any:
        kind: str = field["type"]
        if kind.startswith("[]"):
            return self._array(field, kind.removeprefix("[]"))
        if "fields" in field:
            is_nullable = _holds(field.get("nullableVersions"), self._version)
            if is_nullable and self._take(1) != b"\x01":
                return None
            return self.structure(field["fields"])
        return self._scalar(kind)

    def _array(self, field: Mapping[str, Any], kind: str) -> list[Any] | None:
        count = self._varint() - 1 if self._is_flexible else self._number("int32")
        if count < 0:
            return None
        if count > self.left:  # no item is smaller than a byte
            raise InternalRecordError(f"{field['name']} claims {count:,} items")
        read: Callable[[], Any] = (
            (lambda: self.structure(field["fields"]))
            if "fields" in field
            else (lambda: self._scalar(kind))
        )
        return [read() for _ in range(count)]

    def _scalar(self, kind: str) -> Any:
        if kind in _NUMBERS:
            return self._number(kind)
        if kind == "uuid":
            return base64.urlsafe_b64encode(self._take(16)).decode().rstrip("=")
        short = "int16" if kind == "string" else "int32"
        size = self._varint() - 1 if self._is_flexible else self._number(short)
        if size < 0:
            return None
        taken = self._take(size)
        return taken.decode() if kind == "string" else base64.b64encode(taken).decode()

    def _number(self, kind: str) -> Any:
        layout = _NUMBERS[kind]
        return layout.unpack(self._take(layout.size))[0]

    def _varint(self) -> int:
        number = 0
        for place in range(_VARINT_BYTES_MAX):
            (byte,) = self._take(1)
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return number
        raise InternalRecordError("a number of more than five bytes")

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise InternalRecordError("it is cut short")
        self._at += size
        return taken


def _camel(name: str) -> str:
    """As Kafka's formatters write it."""
    return name[:1].lower() + name[1:]
