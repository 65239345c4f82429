"""Sample messages of every API that kio knows, and a writer that adds unknown tags to them."""

import io
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    classify_field,
    get_field_tag,
    is_optional,
)
from kio.serial._serialize import get_field_writer
from kio.serial.writers import (
    write_compact_array_length,
    write_int8,
    write_tagged_field,
    write_unsigned_varint,
)
from kio.static.primitive import Records, i8, uvarint

UNKNOWN_TAG = uvarint(200)


def every_version() -> Iterator[tuple[int, int]]:
    """(api_key, version) of every request in kio's schema."""
    for api_key, name in api_key_map.items():
        for version in schema_name_map[name]:
            yield api_key, version


def sample(entity_type: type[Any]) -> Any:
    """An entity with one element in every array and no field at its default, where possible."""
    return entity_type(**{field.name: _value(field) for field in fields(entity_type)})


def _value(field: Any) -> Any:
    shape = classify_field(field)
    if isinstance(shape, EntityTupleField | EntityField):
        inner = sample(shape.type_)
        return (inner,) if shape.is_array else inner
    value = _scalar(shape.type_, field.metadata["kafka_type"])
    return (value,) if shape.is_array else value


def _scalar(type_: Any, kafka_type: str) -> Any:
    values: dict[str, Any] = {
        "error_code": ErrorCode.not_controller,
        "timedelta_i32": timedelta(milliseconds=1234),
        "timedelta_i64": timedelta(milliseconds=4321),
        "uuid": UUID(int=7),
        "bool": True,
        "string": "Grüße",
        "bytes": b"\x00\x01",
        "records": Records(b"\x05\x06"),
        "float64": 1.5,
    }
    if kafka_type == "datetime_i64":
        import datetime

        return datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    return values.get(kafka_type, 3)


def write_with_unknown_tags(buffer: io.BytesIO, entity: Any) -> None:
    """What kio's writer does for a flexible entity, plus tag 200 at every level."""
    tags: dict[int, bytes] = {UNKNOWN_TAG: b"later"}
    for field in fields(entity):
        value = getattr(entity, field.name)
        tag = get_field_tag(field)
        if tag is None:
            _write_field(buffer, field, value)
            continue
        with io.BytesIO() as inner:
            _write_field(inner, field, value, is_tag=True)
            tags[tag] = inner.getvalue()
    write_unsigned_varint(buffer, uvarint(len(tags)))
    for number in sorted(tags):
        write_tagged_field(buffer, uvarint(number), _write_raw, tags[number])


def _write_raw(buffer: Any, raw: bytes) -> None:
    buffer.write(raw)


def _write_field(buffer: io.BytesIO, field: Any, value: Any, *, is_tag: bool = False) -> None:
    shape = classify_field(field)
    if isinstance(shape, EntityTupleField):
        write_compact_array_length(buffer, len(value))
        for item in value:
            write_with_unknown_tags(buffer, item)
    elif isinstance(shape, EntityField):
        if is_optional(field) and not is_tag:
            write_int8(buffer, i8(1))
        write_with_unknown_tags(buffer, value)
    else:
        get_field_writer(field, flexible=True, is_request_header=False, is_tag=is_tag)(
            buffer, value
        )
