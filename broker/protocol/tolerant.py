"""Readers that skip tagged fields they do not know, as KIP-482 asks.

kio's native readers raise KeyError on an unknown tag. These readers are built from the same
schema metadata, but walk entities in Python; only messages that carry such a tag pay for it.

Worked example, the end of a flexible entity with one unknown tag 99 of two bytes:
`01 63 02 aa bb` = one tagged field, tag 0x63, size 2, two bytes that are stepped over.
"""

from collections.abc import Callable
from dataclasses import Field, fields
from functools import cache
from typing import Any

from kio._kio_native import get_field_reader
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    classify_field,
    get_field_tag,
    is_optional,
)
from kio.serial.errors import UnexpectedNull
from kio.serial.readers import (
    read_compact_array_length,
    read_int8,
    read_legacy_array_length,
    read_unsigned_varint,
)

Reader = Callable[[memoryview, int], tuple[Any, int]]


@cache
def tolerant_reader(entity_type: type[Any]) -> Reader:
    """A reader (buffer, position) -> (entity, size in bytes) that steps over unknown tags."""
    plain: list[tuple[str, Reader]] = []
    tagged: dict[int, tuple[str, Reader]] = {}
    defaults: dict[str, Any] = {}
    for field in fields(entity_type):
        tag = get_field_tag(field)
        reader = _field_reader(entity_type, field, is_tagged=tag is not None)
        if tag is None:
            plain.append((field.name, reader))
        else:
            tagged[tag] = (field.name, reader)
            defaults[field.name] = get_tagged_field_default(field)
    is_flexible = entity_type.__flexible__

    def read_entity(buffer: memoryview, position: int) -> tuple[Any, int]:
        values = dict(defaults)
        start = position
        for name, read in plain:
            values[name], size = read(buffer, position)
            position += size
        if is_flexible:
            position += _read_tags(buffer, position, tagged, values)
        return entity_type(**values), position - start

    return read_entity


def skip_tags(buffer: memoryview, position: int) -> int:
    """The size in bytes of a tagged-field section, whatever it holds."""
    return _read_tags(buffer, position, {}, {})


def _read_tags(
    buffer: memoryview,
    position: int,
    known: dict[int, tuple[str, Reader]],
    values: dict[str, Any],
) -> int:
    start = position
    count, size = read_unsigned_varint(buffer, position)
    position += size
    for _ in range(count):
        tag, size = read_unsigned_varint(buffer, position)
        position += size
        length, size = read_unsigned_varint(buffer, position)
        position += size
        if position + length > len(buffer):
            raise ValueError(f"tagged field {tag} of {length} bytes runs over the end")
        if tag in known:
            name, read = known[tag]
            values[name], _ = read(buffer, position)
        position += length
    return position - start


def _field_reader(entity_type: type[Any], field: Field[Any], *, is_tagged: bool) -> Reader:
    shape = classify_field(field)
    if isinstance(shape, EntityTupleField):
        return _array_reader(
            tolerant_reader(shape.type_),
            is_flexible=entity_type.__flexible__,
            is_nullable=is_optional(field),
        )
    if isinstance(shape, EntityField):
        read = tolerant_reader(shape.type_)
        return _nullable_reader(read) if is_optional(field) and not is_tagged else read
    native: Reader = get_field_reader(entity_type, field, False, is_tagged)
    return native


def _array_reader(read_item: Reader, *, is_flexible: bool, is_nullable: bool) -> Reader:
    read_length: Callable[[memoryview, int], tuple[int | None, int]] = (
        read_compact_array_length if is_flexible else read_legacy_array_length
    )

    def read_array(buffer: memoryview, position: int) -> tuple[Any, int]:
        start = position
        length, size = read_length(buffer, position)
        position += size
        if length is None or length < 0:
            if is_nullable:
                return None, size
            raise UnexpectedNull("null where an array is required")
        items = []
        for _ in range(length):
            item, size = read_item(buffer, position)
            position += size
            items.append(item)
        return tuple(items), position - start

    return read_array


def _nullable_reader(read: Reader) -> Reader:
    """A struct that may be null is led by one byte: -1 null, 1 present (KIP-893)."""

    def read_nullable(buffer: memoryview, position: int) -> tuple[Any, int]:
        marker, _ = read_int8(buffer, position)
        if marker < 0:
            return None, 1
        entity, size = read(buffer, position + 1)
        return entity, size + 1

    return read_nullable
