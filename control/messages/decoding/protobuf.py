"""A Protobuf message in JSON's types, within a bound of values.

As Protobuf's own JSON, but 64-bit numbers are numbers, which expressions compare. A time or other
well-known type that its JSON cannot hold stays as its fields.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

from control.messages.decoding.formats import VALUES_MAX, BoundError

_WELL_KNOWN: Final = "google.protobuf."
_BY_LIBRARY: Final = frozenset(
    _WELL_KNOWN + name
    for name in ("Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value")
)
_WRAPPER: Final = "Value"
_FLOAT: Final = struct.Struct("<f")
_FLOAT_DIGITS: Final = range(6, 10)


class ProtobufPrinter:
    """Turns one message into a document."""

    def __init__(self) -> None:
        self._values_left = VALUES_MAX

    def document(self, message: Any) -> Any:
        """A message's fields by name.

        :raises BoundError: there are too many values.
        """
        name: str = message.DESCRIPTOR.full_name
        if name in _BY_LIBRARY:
            try:
                pool = message.DESCRIPTOR.file.pool
                return json_format.MessageToDict(message, descriptor_pool=pool)
            except (ValueError, TypeError, ArithmeticError, AttributeError, json_format.Error):
                pass  # beyond every calendar, of a type that is not known, or a name taken
        elif (
            name.startswith(_WELL_KNOWN)
            and name.endswith(_WRAPPER)
            and (content := message.DESCRIPTOR.fields_by_name.get("value"))
        ):
            return self._scalar(content, message.value)
        found = {}
        for field in message.DESCRIPTOR.fields:
            if field.is_repeated or not field.has_presence or message.HasField(field.name):
                found[field.name] = self._field(field, getattr(message, field.name))
        for field, value in message.ListFields():
            if field.is_extension:
                found[f"[{field.full_name}]"] = self._field(field, value)
        return found

    def _field(self, field: FieldDescriptor, value: Any) -> Any:
        if not field.is_repeated:
            return self._scalar(field, value)
        its = field.message_type
        if its is not None and its.GetOptions().map_entry:
            content = its.fields_by_name["value"]
            return {_name(name): self._scalar(content, value[name]) for name in value}
        return [self._scalar(field, each) for each in value]

    def _scalar(self, field: FieldDescriptor, value: Any) -> Any:
        self._values_left -= 1
        if self._values_left < 0:
            raise BoundError.of_values()
        if field.message_type is not None:
            return self.document(value)
        if field.enum_type is not None:
            symbol = field.enum_type.values_by_number.get(value)
            return value if symbol is None else symbol.name
        told = _TOLD.get(field.type)
        return value if told is None else told(value)


def _name(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float(value: float) -> float | str:
    """The number with the fewest digits that tell it from its neighbours."""
    for digits in _FLOAT_DIGITS:
        short = float(f"{value:.{digits}g}")
        if (
            math.isfinite(value)
            and abs(short) < 3.4e38
            and _FLOAT.unpack(_FLOAT.pack(short)) == (value,)
        ):
            return short
    return _double(value)


_TOLD: Final[dict[int, Callable[[Any], Any]]] = {
    FieldDescriptor.TYPE_BYTES: lambda value: base64.b64encode(value).decode(),
    FieldDescriptor.TYPE_DOUBLE: _double,
    FieldDescriptor.TYPE_FLOAT: _float,
}
