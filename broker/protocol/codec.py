"""Kafka messages by kio's schema: the default codec for every API.

Requests and responses are read by broker.protocol.bounded, whoever sent them. Produce, Fetch and
Metadata have codecs in broker.protocol.hot.

The first message of an API and version costs 3 to 35 ms, since kio makes its classes when they are
asked for: `prepare` has that done in a thread.

Errors: MalformedRequestError, UnsupportedVersionError (see broker.protocol.errors).
"""

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.serial import entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType

from broker.protocol.bounded import bounded_reader, skip_tags
from broker.protocol.build import entity_builder, names_of, newest_version
from broker.protocol.errors import (
    MalformedRequestError,
    RequestHeader,
    UnsupportedVersionError,
)

__all__ = (
    "DecodedRequest",
    "MalformedRequestError",
    "RequestHeader",
    "UnsupportedVersionError",
    "build_request",
    "build_response",
    "decode_body",
    "decode_header",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "is_prepared",
    "kind_of",
    "prepare",
)

_REQUEST_PREFIX = struct.Struct(">hhih")
_KIND = struct.Struct(">hh")
_UNDECODABLE = (SerialError, ValueError, TypeError, LookupError, OverflowError, struct.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedRequest:
    """A whole request: the shared header and kio's entity of exactly that version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    message: Any


@cache
def request_type(api_key: int, api_version: int) -> type[Any]:
    """kio's class of a request.

    :raises KioIndexError: unknown API or version.
    """
    return load_request_schema(api_key, api_version)


@cache
def response_type(api_key: int, api_version: int) -> type[Any]:
    """kio's class of a response.

    :raises KioIndexError: unknown API or version.
    """
    return load_response_schema(api_key, api_version)


_prepared: set[tuple[int, int]] = set()


def kind_of(frame: memoryview | bytes) -> tuple[int, int]:
    """(API key, version) that a request's frame begins with; of one that is cut short, none that
    exist."""
    kind: tuple[int, int] = _KIND.unpack_from(frame) if len(frame) >= _KIND.size else (-1, -1)
    return kind


def is_prepared(kind: tuple[int, int]) -> bool:
    """Whether requests of this API key and version are served without delay."""
    return kind in _prepared


def prepare(api_key: int, api_version: int) -> None:
    """Make what the first request of a kind and its response need. May run in any thread. It is
    done once, also if it fails: what lacks is then made, or told, when it is used.

    :raises KioIndexError: unknown API or version.
    """
    try:
        asked: Any = request_type(api_key, api_version)
        answer: Any = response_type(api_key, api_version)
        bounded_reader(asked)
        _writer(answer)
        entity_builder(answer, (api_key, EntityType.response))
        names_of(api_key, EntityType.response, newest_version(api_key))
    finally:
        _prepared.add((api_key, api_version))


def is_flexible_header(api_key: int, api_version: int) -> bool:
    """Whether the request header ends in tagged fields (header version 2)."""
    return bool(request_type(api_key, api_version).__header_schema__.__flexible__)


def decode_header(frame: memoryview | bytes) -> RequestHeader:
    """The header of a frame (without its size prefix).

    client_id stays a legacy string in every header version. `body_position` is right only for
    versions in the schema; for others it points behind client_id.

    :raises MalformedRequestError: the frame is too short or client_id is not UTF-8.
    """
    try:
        api_key, api_version, correlation_id, length = _REQUEST_PREFIX.unpack_from(frame)
        position = _REQUEST_PREFIX.size
        client_id = None
        if length >= 0:
            raw = bytes(frame[position : position + length])
            if len(raw) < length:
                raise ValueError("client_id runs over the end of the frame")
            client_id = raw.decode()
            position += length
        if _has_flexible_header(api_key, api_version):
            position += skip_tags(_readable(frame), position)
    except _UNDECODABLE as error:
        raise MalformedRequestError(f"unreadable request header: {error}") from error
    return RequestHeader(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=client_id,
        body_position=position,
    )


@cache
def _has_flexible_header(api_key: int, api_version: int) -> bool:
    try:
        return is_flexible_header(api_key, api_version)
    except KioIndexError:
        return False


def decode_body(header: RequestHeader, frame: memoryview | bytes) -> Any:
    """The message of a request whose header was read.

    :raises UnsupportedVersionError: API or version outside the schema.
    :raises MalformedRequestError: the body does not follow the schema.
    """
    try:
        entity_type: Any = request_type(header.api_key, header.api_version)
    except KioIndexError as error:
        raise UnsupportedVersionError(header) from error
    try:
        return bounded_reader(entity_type)(_readable(frame), header.body_position)[0]
    except _UNDECODABLE as error:
        story = f"unreadable {entity_type.__name__} v{header.api_version}: {error}"
        raise MalformedRequestError(story) from error


def decode_request(frame: memoryview | bytes) -> DecodedRequest:
    """A whole request from a frame without its size prefix.

    :raises UnsupportedVersionError: API or version outside the schema.
    :raises MalformedRequestError: the bytes do not follow the schema.
    """
    header = decode_header(frame)
    return DecodedRequest(
        api_key=header.api_key,
        api_version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        message=decode_body(header, frame),
    )


def _readable(frame: memoryview | bytes) -> memoryview:
    """kio's native readers take read-only buffers only."""
    view = memoryview(frame)
    return view if view.readonly else view.toreadonly()


@cache
def _writer(entity_type: Any) -> Callable[[io.BytesIO, Any], None]:
    return entity_writer(entity_type)


def encode_response(api_key: int, api_version: int, correlation_id: int, message: Any) -> bytes:
    """A response ready for the wire, led by its 4-byte size."""
    header_type = response_type(api_key, api_version).__header_schema__
    header = struct.pack(">i", correlation_id)
    return _frame(header + b"\x00" if header_type.__flexible__ else header, message)


def encode_request(message: Any, *, correlation_id: int, client_id: str | None) -> bytes:
    """A request ready for the wire, led by its 4-byte size."""
    client = None if client_id is None else client_id.encode()
    length = -1 if client is None else len(client)
    prefix = (message.__api_key__, message.__version__, correlation_id, length)
    header = _REQUEST_PREFIX.pack(*prefix) + (client or b"")
    is_flexible = message.__header_schema__.__flexible__
    return _frame(header + b"\x00" if is_flexible else header, message)


def _frame(header: bytes, message: Any) -> bytes:
    buffer = io.BytesIO()
    buffer.write(b"\x00\x00\x00\x00")
    buffer.write(header)
    kind: Any = type(message)
    _writer(kind)(buffer, message)
    view = buffer.getbuffer()
    struct.pack_into(">i", view, 0, len(view) - 4)
    return bytes(view)


def decode_response(api_key: int, api_version: int, payload: memoryview | bytes) -> tuple[int, Any]:
    """Correlation id and message of a response without its size prefix.

    :raises MalformedRequestError: the bytes do not follow the schema.
    """
    entity_type: Any = response_type(api_key, api_version)
    buffer = _readable(payload)
    try:
        (correlation_id,) = struct.unpack_from(">i", buffer)
        position = 4
        if entity_type.__header_schema__.__flexible__:
            position += skip_tags(buffer, position)
        return correlation_id, bounded_reader(entity_type)(buffer, position)[0]
    except _UNDECODABLE as error:
        story = f"unreadable {entity_type.__name__} v{api_version}: {error}"
        raise MalformedRequestError(story) from error


def build_response(api_key: int, api_version: int, **fields: object) -> Any:
    """A response entity from plain values: nested mappings and sequences of mappings.

    Field names are kio's (`throttle_time`, not `throttle_time_ms`). Durations and timestamps may
    be int milliseconds, errors int codes. Fields that this version lacks are dropped, missing
    ones take the schema's default.

    :raises TypeError: a field that no version of the message has.
    """
    return _build(response_type(api_key, api_version), (api_key, EntityType.response), fields)


def build_request(api_key: int, api_version: int, **fields: object) -> Any:
    """A request entity from plain values; see build_response."""
    return _build(request_type(api_key, api_version), (api_key, EntityType.request), fields)


def _build(entity_type: Any, api: tuple[int, EntityType], values: Mapping[str, Any]) -> Any:
    return entity_builder(entity_type, api)(values)
