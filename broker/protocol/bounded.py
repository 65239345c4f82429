"""Readers that believe no announced length, and skip tagged fields they do not know (KIP-482).

kio's native readers reserve memory for as many items as an array announces: a few bytes end the
process, which no handler can catch. They also raise KeyError on an unknown tag. These readers are
built from the same schema metadata. They walk entities in Python, but leave entities without arrays
to the native readers, one by one or a whole array whose length was checked; an unknown tag in one
of those has it walked, too. So an announced length reserves 8 bytes at most for each byte that
follows.

Worked example, the end of a flexible entity with one unknown tag 99 of two bytes:
`01 63 02 aa bb` = one tagged field, tag 0x63, size 2, two bytes that are stepped over.
"""

from collections.abc import Callable
from dataclasses import Field, fields
from functools import cache
from typing import Any, get_origin

from kio._kio_native import get_field_reader
from kio.serial import entity_reader
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

ReadLength = Callable[[memoryview, int], tuple[int | None, int]]
Reader = Callable[[memoryview, int], tuple[Any, int]]


@cache
def bounded_reader(entity_type: type[Any]) -> Reader:
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

    def walk_entity(buffer: memoryview, position: int) -> tuple[Any, int]:
        values = dict(defaults)
        start = position
        for name, read in plain:
            values[name], size = read(buffer, position)
            position += size
        if is_flexible:
            position += _read_tags(buffer, position, tagged, values)
        return entity_type(**values), position - start

    kind: Any = entity_type
    if _has_arrays(kind):
        return walk_entity
    return _native_first(entity_reader(kind), walk_entity)


@cache
def _has_arrays(entity_type: type[Any]) -> bool:
    """Whether an array is announced anywhere in an entity."""
    shapes = [classify_field(field) for field in fields(entity_type)]
    return any(
        shape.is_array or (isinstance(shape, EntityField) and _has_arrays(shape.type_))
        for shape in shapes
    )


def _native_first(native: Reader, walk: Reader) -> Reader:
    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        try:
            return native(buffer, position)
        except KeyError:  # an unknown tag
            return walk(buffer, position)

    return read


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
        read_length, is_nullable = _length_reader(entity_type), is_optional(field)
        walk = _array_reader(bounded_reader(shape.type_), read_length, is_nullable=is_nullable)
        if is_tagged or _has_arrays(shape.type_):
            return walk
        native_array: Reader = get_field_reader(entity_type, field, False, False)
        native_array = _bounded(native_array, read_length, is_nullable=is_nullable)
        return _native_first(native_array, walk)
    if isinstance(shape, EntityField):
        read = bounded_reader(shape.type_)
        return _nullable_reader(read) if is_optional(field) and not is_tagged else read
    native: Reader = get_field_reader(entity_type, field, False, is_tagged)
    if not shape.is_array:
        return native
    is_nullable = get_origin(field.type) is not tuple  # a union with None
    return _bounded(native, _length_reader(entity_type), is_nullable=is_nullable)


def _length_reader(entity_type: type[Any]) -> ReadLength:
    is_flexible = entity_type.__flexible__
    return read_compact_array_length if is_flexible else read_legacy_array_length


def _check_length(
    length: int | None, buffer: memoryview, position: int, *, is_nullable: bool
) -> bool:
    """Whether there is an array. Each of its items takes a byte at least: kio reserves memory for
    as many as are announced, and a process that cannot have it is aborted."""
    if length is None or length < 0:
        if is_nullable:
            return False
        raise UnexpectedNull("null where an array is required")
    if length > len(buffer) - position:
        raise ValueError(f"an array of {length} exceeds the message")
    return True


def _bounded(read: Reader, read_length: ReadLength, *, is_nullable: bool) -> Reader:
    def read_bounded(buffer: memoryview, position: int) -> tuple[Any, int]:
        length, _ = read_length(buffer, position)
        _check_length(length, buffer, position, is_nullable=is_nullable)
        return read(buffer, position)

    return read_bounded


def _array_reader(read_item: Reader, read_length: ReadLength, *, is_nullable: bool) -> Reader:
    def read_array(buffer: memoryview, position: int) -> tuple[Any, int]:
        start = position
        length, size = read_length(buffer, position)
        position += size
        if not _check_length(length, buffer, position, is_nullable=is_nullable):
            return None, size
        items = []
        for _ in range(length or 0):
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
