"""Decodes the records of one topic: by the chosen formats, else by what the bytes show.

Called from threads: the first message of a schema asks the registry, for a bounded time.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.record import FetchedRecord, MaskedPart
from control.kafka.records.schema_registry import (
    RegistryError,
    SchemaKind,
    SchemaRegistry,
    UnknownSchemaError,
    registry_at,
)
from control.messages.decoding import internal_topics
from control.messages.decoding.formats import (
    BoundError,
    Decoded,
    Format,
    Formats,
    document_decoded,
    json_decoded,
    jsonable,
)
from control.messages.decoding.schemas import (
    SchemaError,
    decode_with,
    schema_id_of,
)

DECODED_BYTES_MAX: Final = 4 << 20
"""A larger key or value is shown as bytes."""
OPENS_DOCUMENT: Final = re.compile(rb"\s*[{\[]")
_KINDS: Final = {
    Format.AVRO: SchemaKind.AVRO,
    Format.PROTOBUF: SchemaKind.PROTOBUF,
    Format.JSON_SCHEMA: SchemaKind.JSON,
}
_FORMAT_OF: Final = {kind: each for each, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedRecord:
    """Key and value of a record; None where they are null."""

    key: Decoded | None
    value: Decoded | None


class Decoder:
    """Reads keys and values of a topic."""

    def __init__(
        self, topic: str, formats: Formats | None = None, registry: SchemaRegistry | None = None
    ) -> None:
        self.topic = topic
        self.formats = formats or Formats()
        self._registry = registry

    @property
    def has_registry(self) -> bool:
        """Whether decoding may wait for a registry."""
        return self._registry is not None

    def record(self, record: FetchedRecord) -> DecodedRecord:
        """Both parts of it."""
        return DecodedRecord(key=self.key(record), value=self.value(record))

    def key(self, record: FetchedRecord) -> Decoded | None:
        """Its key."""
        data, chosen = record.key, self.formats.key
        if data is None:
            return None
        if masked := (record.masked or {}).get("key"):
            return _masked(data, masked, is_cut=len(data) < record.key_bytes)
        if self._is_internal(chosen):
            return _tried(
                lambda: document_decoded(
                    internal_topics.decode_key(self.topic, data), Format.KAFKA
                ),
                Format.KAFKA,
                data,
            )
        return self._part(data, chosen, is_cut=len(data) < record.key_bytes)

    def value(self, record: FetchedRecord) -> Decoded | None:
        """Its value."""
        data, chosen = record.value, self.formats.value
        if data is None:
            return None
        if masked := (record.masked or {}).get("value"):
            return _masked(data, masked, is_cut=len(data) < record.value_bytes)
        if self._is_internal(chosen):
            return _tried(
                lambda: document_decoded(
                    internal_topics.decode_value(self.topic, record.key, data), Format.KAFKA
                ),
                Format.KAFKA,
                data,
            )
        return self._part(data, chosen, is_cut=len(data) < record.value_bytes)

    def _is_internal(self, chosen: Format) -> bool:
        return chosen is Format.AUTO and self.topic in internal_topics.INTERNAL_TOPICS

    def _part(self, data: bytes, chosen: Format, *, is_cut: bool) -> Decoded:
        if chosen in _PLAIN:
            return _PLAIN[chosen](data)
        if is_cut or len(data) > DECODED_BYTES_MAX:
            error = "" if chosen is Format.AUTO else "it is too large to be decoded here"
            return _bytes_shown(data, error, is_cut=is_cut)
        if chosen is Format.AUTO:
            return self._detected(data)
        if chosen in _KINDS:
            return _tried(lambda: self._by_schema(data, chosen), chosen, data)
        return _tried(lambda: _DOCUMENTS[chosen](data), chosen, data)

    def _detected(self, data: bytes) -> Decoded:
        if self._registry is not None and schema_id_of(data) is not None:
            try:
                return self._by_schema(data, None)
            except UnknownSchemaError:
                pass  # bytes that begin with a zero byte for another reason
            except (ValueError, RegistryError) as error:
                return _bytes_shown(data, str(error))
        if OPENS_DOCUMENT.match(data):
            try:
                return json_decoded(data.decode())
            except BoundError as error:
                return _bytes_shown(data, str(error))
            except ValueError:
                pass
        return _bytes_shown(data)

    def _by_schema(self, data: bytes, wanted: Format | None) -> Decoded:
        schema_id = schema_id_of(data)
        if schema_id is None:
            raise SchemaError("it does not begin with a zero byte and the id of a schema")
        if self._registry is None:
            words = f"its schema is number {schema_id}, and no schema registry is known"
            raise SchemaError(
                f"{words}: name it by the setting schema_registry.url (`--schema-registry URL`)"
            )
        schema = self._registry.schema(schema_id)
        kind = _FORMAT_OF[schema.kind]
        if wanted is not None and wanted is not kind:
            raise SchemaError(f"schema {schema_id} is of the format {kind}, not {wanted}")
        return decode_with(schema, data)


def decoder_of(
    settings: KafkaSettings | str, topic: str, formats: Formats | None = None
) -> Decoder:
    """A decoder with the registry of the cluster, where it has one."""
    registry = settings_of(settings).schema_registry
    return Decoder(topic, formats, None if registry is None else registry_at(registry))


def _masked(data: bytes, part: MaskedPart, *, is_cut: bool) -> Decoded:
    """Reads a masked part, by no chosen format: its bytes are JSON or text now."""
    if is_cut or not part.is_document:
        return _bytes_shown(data, is_cut=is_cut)
    kind, text = Format(part.format), data.decode()
    return json_decoded(text, kind, schema_id=part.schema_id, type_name=part.type_name)


def _tried(decode: Callable[[], Decoded], kind: Format, data: bytes) -> Decoded:
    try:
        return decode()
    except (ValueError, RegistryError) as error:
        return _bytes_shown(data, f"not read as {kind}: {error}")


def _bytes_shown(data: bytes, error: str = "", *, is_cut: bool = False) -> Decoded:
    """Text where the bytes are UTF-8, else hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        # What was cut may end within a character.
        if not is_cut or fault.start < len(data) - 3:
            return Decoded(format=Format.HEX, written="0x" + data.hex(), error=error)
        text = data[: fault.start].decode()
    return Decoded(format=Format.STRING, written=text, error=error)


def _msgpack(data: bytes) -> Decoded:
    import msgpack

    try:
        document = msgpack.unpackb(data, strict_map_key=False)
    except UnicodeDecodeError:  # older writers have no type for bytes
        document = msgpack.unpackb(data, raw=True, strict_map_key=False)
    except (msgpack.exceptions.UnpackException, msgpack.exceptions.ExtraData) as error:
        raise ValueError(str(error) or type(error).__name__) from error
    return document_decoded(jsonable(document), Format.MSGPACK)


def _string(data: bytes) -> Decoded:
    try:
        return Decoded(format=Format.STRING, written=data.decode())
    except UnicodeDecodeError as error:
        return _bytes_shown(data, f"not read as string: byte {error.start} is not UTF-8")


_PLAIN: Final[Mapping[Format, Callable[[bytes], Decoded]]] = {
    Format.STRING: _string,
    Format.HEX: lambda data: Decoded(format=Format.HEX, written="0x" + data.hex()),
    Format.BASE64: lambda data: Decoded(
        format=Format.BASE64, written=base64.b64encode(data).decode()
    ),
}
_DOCUMENTS: Final[Mapping[Format, Callable[[bytes], Decoded]]] = {
    Format.JSON: lambda data: json_decoded(data.decode()),
    Format.MSGPACK: _msgpack,
}
