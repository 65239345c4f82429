"""Bytes of metadata records: Kafka's flexible-version encoding, from a table of schemas."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final
from uuid import UUID

from broker.metadata import records
from broker.metadata.records import MetadataRecord, RecordError, UnknownRecordError
from broker.protocol.hot.cursor import (
    Cursor,
    encode_length,
    encode_string,
    encode_tagged,
    encode_uvarint,
)

FRAME_VERSION: Final = 1

Write = Callable[[bytearray, Any], None]
Read = Callable[[Cursor], Any]


class _RecordCursor(Cursor):
    error = RecordError


@dataclass(frozen=True, slots=True)
class Type:
    """How a field is written and read."""

    write: Write
    read: Read


def _number(code: str) -> Type:
    layout = struct.Struct(f">{code}")

    def write(out: bytearray, value: float) -> None:
        out += layout.pack(value)

    def read(cursor: Cursor) -> Any:
        return cursor.unpack(layout)[0]

    return Type(write, read)


def _array(item: Type) -> Type:
    def write(out: bytearray, values: tuple[Any, ...] | None) -> None:
        out += encode_length(-1 if values is None else len(values), True)
        for value in values or ():
            item.write(out, value)

    def read(cursor: Cursor) -> tuple[Any, ...] | None:
        count = cursor.length(True)
        return None if count < 0 else tuple([item.read(cursor) for _ in range(count)])

    return Type(write, read)


INT8, INT16, INT32, INT64, UINT16, FLOAT64 = map(_number, "bhiqHd")
BOOL: Final = Type(lambda out, v: out.append(int(v)), lambda cursor: bool(cursor.take(1)[0]))
STRING: Final = Type(
    lambda out, v: out.extend(encode_string(v, True)), lambda cursor: cursor.nullable_string(True)
)
BYTES: Final = Type(
    lambda out, v: out.extend(encode_length(len(v), True) + v),
    lambda cursor: bytes(cursor.take(cursor.length(True))),
)
UUID_: Final = Type(lambda out, v: out.extend(v.bytes), lambda cursor: UUID(bytes=cursor.uuid()))
INT32S: Final = _array(INT32)
UUIDS: Final = _array(UUID_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """One record type: its fields in order, then its tagged fields by tag.

    A tagged field is left out when it has the default of its dataclass. Unknown tags are
    skipped. Kafka's fields that we do not keep have the name "" and their constant value.
    """

    record: type
    fields: tuple[tuple[str, Type], ...]
    tagged: tuple[tuple[int, str, Type], ...] = ()
    api_key: int = -1
    version: int = 0


def _struct(schema: Schema) -> Type:
    defaults = {field.name: field.default for field in fields(schema.record)}
    by_tag = {tag: (name, type_) for tag, name, type_ in schema.tagged}

    def write(out: bytearray, value: Any) -> None:
        for name, type_ in schema.fields:
            type_.write(out, getattr(value, name))
        present = [t for t in schema.tagged if getattr(value, t[1]) != defaults[t[1]]]
        out += encode_uvarint(len(present))
        for tag, name, type_ in present:
            body = bytearray()
            type_.write(body, getattr(value, name))
            out += encode_tagged(tag, body)

    def read(cursor: Cursor) -> Any:
        values = {name: type_.read(cursor) for name, type_ in schema.fields}
        for _ in range(cursor.uvarint()):
            tag = cursor.uvarint()
            body = _RecordCursor(cursor.take(cursor.uvarint()))
            if tag in by_tag:
                name, type_ = by_tag[tag]
                values[name] = type_.read(body)
        return schema.record(**values)

    return Type(write, read)


_ENDPOINT: Final = _struct(
    Schema(
        record=records.BrokerEndpoint,
        fields=(("name", STRING), ("host", STRING), ("port", UINT16), ("security_protocol", INT16)),
    )
)
_FEATURE: Final = _struct(
    Schema(
        record=records.BrokerFeature,
        fields=(
            ("name", STRING),
            ("min_supported_version", INT16),
            ("max_supported_version", INT16),
        ),
    )
)
_QUOTA_ENTITY_PART: Final = _struct(
    Schema(
        record=records.QuotaEntityPart,
        fields=(("entity_type", STRING), ("entity_name", STRING)),
    )
)

_REGISTRATION: Final = (
    ("incarnation_id", UUID_),
    ("broker_epoch", INT64),
    ("endpoints", _array(_ENDPOINT)),
    ("features", _array(_FEATURE)),
    ("rack", STRING),
    ("fenced", BOOL),
    ("in_controlled_shutdown", BOOL),
)

SCHEMAS: Final = (
    Schema(
        record=records.RegisterBrokerRecord,
        api_key=0,
        version=4,
        fields=(
            ("broker_id", INT32),
            ("is_migrating_zk_broker", BOOL),
            *_REGISTRATION,
        ),
        tagged=((0, "log_dirs", UUIDS), (1, "cordoned_log_dirs", UUIDS)),
    ),
    Schema(
        record=records.UnregisterBrokerRecord,
        api_key=1,
        fields=(("broker_id", INT32), ("broker_epoch", INT64)),
    ),
    Schema(
        record=records.BrokerRegistrationChangeRecord,
        api_key=17,
        version=3,
        fields=(("broker_id", INT32), ("broker_epoch", INT64)),
        tagged=(
            (0, "fenced", INT8),
            (1, "in_controlled_shutdown", INT8),
            (2, "log_dirs", UUIDS),
            (3, "cordoned_log_dirs", UUIDS),
        ),
    ),
    Schema(record=records.TopicRecord, api_key=2, fields=(("name", STRING), ("topic_id", UUID_))),
    Schema(record=records.RemoveTopicRecord, api_key=9, fields=(("topic_id", UUID_),)),
    Schema(
        record=records.PartitionRecord,
        api_key=3,
        fields=(
            ("partition_id", INT32),
            ("topic_id", UUID_),
            ("replicas", INT32S),
            ("isr", INT32S),
            ("removing_replicas", INT32S),
            ("adding_replicas", INT32S),
            ("leader", INT32),
            ("leader_epoch", INT32),
            ("partition_epoch", INT32),
        ),
    ),
    Schema(
        record=records.PartitionChangeRecord,
        api_key=5,
        fields=(("partition_id", INT32), ("topic_id", UUID_)),
        tagged=(
            (0, "isr", INT32S),
            (1, "leader", INT32),
            (2, "replicas", INT32S),
            (3, "removing_replicas", INT32S),
            (4, "adding_replicas", INT32S),
        ),
    ),
    Schema(
        record=records.ConfigRecord,
        api_key=4,
        fields=(
            ("resource_type", INT8),
            ("resource_name", STRING),
            ("name", STRING),
            ("value", STRING),
        ),
    ),
    Schema(
        record=records.UserScramCredentialRecord,
        api_key=11,
        fields=(
            ("name", STRING),
            ("mechanism", INT8),
            ("salt", BYTES),
            ("stored_key", BYTES),
            ("server_key", BYTES),
            ("iterations", INT32),
        ),
    ),
    Schema(
        record=records.RemoveUserScramCredentialRecord,
        api_key=22,
        fields=(("name", STRING), ("mechanism", INT8)),
    ),
    Schema(
        record=records.AccessControlEntryRecord,
        api_key=18,
        fields=(
            ("id", UUID_),
            ("resource_type", INT8),
            ("resource_name", STRING),
            ("pattern_type", INT8),
            ("principal", STRING),
            ("host", STRING),
            ("operation", INT8),
            ("permission_type", INT8),
        ),
    ),
    Schema(record=records.RemoveAccessControlEntryRecord, api_key=19, fields=(("id", UUID_),)),
    Schema(
        record=records.ClientQuotaRecord,
        api_key=14,
        fields=(
            ("entity", _array(_QUOTA_ENTITY_PART)),
            ("key", STRING),
            ("value", FLOAT64),
            ("remove", BOOL),
        ),
    ),
    Schema(
        record=records.ProducerIdsRecord,
        api_key=15,
        fields=(("broker_id", INT32), ("broker_epoch", INT64), ("next_producer_id", INT64)),
    ),
    Schema(
        record=records.FeatureLevelRecord,
        api_key=12,
        fields=(("name", STRING), ("feature_level", INT16)),
    ),
    Schema(record=records.NoOpRecord, api_key=20, fields=()),
)

OLDER_SCHEMAS: Final = (
    Schema(
        record=records.RegisterBrokerRecord,
        api_key=0,
        version=1,
        fields=(("broker_id", INT32), *_REGISTRATION),
    ),
    Schema(
        record=records.BrokerRegistrationChangeRecord,
        api_key=17,
        version=1,
        fields=(("broker_id", INT32), ("broker_epoch", INT64)),
        tagged=((0, "fenced", INT8), (1, "in_controlled_shutdown", INT8)),
    ),
)
"""Versions that earlier builds wrote: they are read, no longer written."""

_STRUCT_BY_RECORD: Final = {schema.record: (schema, _struct(schema)) for schema in SCHEMAS}
_STRUCT_BY_VERSION: Final = {
    (schema.api_key, schema.version): (schema, _struct(schema))
    for schema in (*SCHEMAS, *OLDER_SCHEMAS)
}
_NAMES: Final = {schema.api_key: schema.record.__name__ for schema in SCHEMAS}


def encode_record(record: MetadataRecord) -> bytes:
    """The value of a metadata record in the log."""
    schema, struct = _STRUCT_BY_RECORD[type(record)]
    out = bytearray((FRAME_VERSION, schema.api_key, schema.version))
    struct.write(out, record)
    return bytes(out)


def decode_record(value: bytes | memoryview) -> MetadataRecord:
    """The record in a value. Raises RecordError, or UnknownRecordError for a newer build's."""
    cursor = _RecordCursor(memoryview(value))
    frame_version, api_key, version = cursor.uvarint(), cursor.uvarint(), cursor.uvarint()
    if frame_version != FRAME_VERSION or api_key not in _NAMES:
        raise UnknownRecordError(f"frame version {frame_version}, record type {api_key}")
    if (api_key, version) not in _STRUCT_BY_VERSION:
        raise UnknownRecordError(f"{_NAMES[api_key]} version {version}")
    schema, struct = _STRUCT_BY_VERSION[api_key, version]
    record: MetadataRecord = struct.read(cursor)
    if cursor.position < len(value):
        raise RecordError(f"{schema.record.__name__} has bytes after its end")
    return record
