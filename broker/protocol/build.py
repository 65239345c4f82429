"""Plain values -> kio entities of exactly one version.

Handlers speak of a response once, with every field they know; a version that lacks a field drops
it, and a field that no version has is a programming error. Values are coerced to what kio's
writers expect: error numbers, milliseconds for durations and timestamps, the zero UUID.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial._implicit_defaults import get_implicit_default
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    PrimitiveField,
    classify_field,
    is_optional,
)
from kio.static.constants import EntityType, uuid_zero

Coerce = Callable[[Any], Any]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _to_duration(value: Any) -> Any:
    return datetime.timedelta(milliseconds=value) if isinstance(value, int) else value


def _to_datetime(value: Any) -> Any:
    if isinstance(value, int):
        return None if value < 0 else _EPOCH + datetime.timedelta(milliseconds=value)
    return value


def _to_uuid(value: Any) -> Any:
    return None if value == uuid_zero else value


def _to_bytes(value: Any) -> Any:
    return None if value is None else bytes(value)


_COERCIONS: Mapping[str, Coerce] = {
    "error_code": ErrorCode,
    "timedelta_i32": _to_duration,
    "timedelta_i64": _to_duration,
    "datetime_i64": _to_datetime,
    "uuid": _to_uuid,
    "bytes": _to_bytes,
    "records": _to_bytes,
}


class EntityBuilder:
    """Builds entities of one kio type from mappings; one instance per type and path."""

    __slots__ = ("_api", "_coercions", "_defaults", "_dropped", "_names", "_path", "entity_type")

    def __init__(self, entity_type: type[Any], api: tuple[int, EntityType], path: str) -> None:
        self.entity_type = entity_type
        self._api = api
        self._path = path
        self._coercions: dict[str, Coerce | None] = {}
        self._defaults: dict[str, Any] = {}
        for field in fields(entity_type):
            self._coercions[field.name] = _coercion(field, api, path)
            self._defaults[field.name] = _default(field)
        self._names = self._coercions.keys()
        self._dropped: set[str] = set()
        """Names that other versions have."""

    def __call__(self, values: Any) -> Any:
        """The entity for a mapping; an entity or None passes through unchanged."""
        if not isinstance(values, Mapping):
            return values
        arguments = dict(self._defaults)
        for name, value in values.items():
            if name in self._names:
                coerce = self._coercions[name]
                arguments[name] = value if coerce is None else coerce(value)
            elif not self._is_elsewhere(name):
                where = f"{self.entity_type.__name__}.{name}"
                raise TypeError(f"{where} exists in no version of this message")
        return self.entity_type(**arguments)

    def _is_elsewhere(self, name: str) -> bool:
        """Whether another version has that field: the newest is looked at first, since loading
        one takes a while."""
        if name not in self._dropped:
            newest_first = sorted(schema_name_map[api_key_map[self._api[0]]], reverse=True)
            is_known = (name in names_of(*self._api, v).get(self._path, ()) for v in newest_first)
            if not any(is_known):
                return False
            self._dropped.add(name)
        return True


@cache
def entity_builder(
    entity_type: type[Any], api: tuple[int, EntityType], path: str = ""
) -> EntityBuilder:
    """The builder for `entity_type`, which sits at `path` of the message `api`."""
    return EntityBuilder(entity_type, api, path)


def _coercion(field: Field[Any], api: tuple[int, EntityType], path: str) -> Coerce | None:
    shape = classify_field(field)
    if isinstance(shape, EntityField):
        return entity_builder(shape.type_, api, f"{path}.{field.name}")
    if isinstance(shape, EntityTupleField):
        return _each(entity_builder(shape.type_, api, f"{path}.{field.name}"))
    scalar = _COERCIONS.get(field.metadata["kafka_type"])
    if isinstance(shape, PrimitiveField):
        return scalar
    return _each(scalar)


def _each(coerce: Coerce | None) -> Coerce:
    def coerce_all(values: Any) -> Any:
        if values is None:
            return None
        return tuple(values) if coerce is None else tuple([coerce(value) for value in values])

    return coerce_all


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if is_optional(field):
        return None
    shape = classify_field(field)
    if shape.is_array:
        return ()
    if isinstance(shape, EntityField):
        return shape.type_(**{inner.name: _default(inner) for inner in fields(shape.type_)})
    if shape.type_ is ErrorCode:
        return ErrorCode.none
    if shape.type_ is bool:
        return False
    if shape.type_ is UUID:
        return None
    if issubclass(shape.type_, bytes):
        return b""
    return get_implicit_default(shape.type_)


@cache
def names_of(api_key: int, kind: EntityType, version: int) -> Mapping[str, frozenset[str]]:
    """Path of a nested entity ("" is the message itself) -> its field names in a version."""
    from kio.index import load_entity_schema

    found: dict[str, set[str]] = {}
    schema = load_entity_schema(api_key_map[api_key], version, kind)  # type: ignore[arg-type]
    _collect_names(schema, "", found)
    return {path: frozenset(names) for path, names in found.items()}


def newest_version(api_key: int) -> int:
    """The newest version of the schema."""
    return max(schema_name_map[api_key_map[api_key]])


def _collect_names(entity_type: type[Any], path: str, found: dict[str, set[str]]) -> None:
    names = found.setdefault(path, set())
    for field in fields(entity_type):
        names.add(field.name)
        shape = classify_field(field)
        if isinstance(shape, EntityField | EntityTupleField):
            _collect_names(shape.type_, f"{path}.{field.name}", found)
