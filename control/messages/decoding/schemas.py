"""Values whose schema a registry has: Avro, Protobuf and JSON behind a zero byte and the id.

The layout is Confluent's: magic byte 0, the schema's id in four bytes, for Protobuf the path of
indexes to the message type, then the content. Libraries read the content.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from control.kafka.records.schema_registry import Schema, SchemaKind, shortened
from control.messages.decoding.avro import AvroReader
from control.messages.decoding.formats import (
    BoundError,
    Decoded,
    Format,
    document_decoded,
    json_decoded,
)
from control.model.units import counted

MAGIC: Final = 0
HEADER_BYTES: Final = 5
COMPILED_MAX: Final = 500
"""Compiled schemas that are kept; the one unused for longest goes first."""
COMPILE_TIMEOUT_S: Final = 10.0
FAILED_S: Final = 60.0
"""A schema that does not compile is tried again after so long."""
PROTOBUF_BYTES_MAX: Final = 1 << 30
"""Memory that a message may take at most: its library reserves all fields of each nested one."""
NAME_MAX: Final = 200
"""Characters that are shown of a name that a schema gives."""
_TOLD_OF: Final = ".proto:"
"""In the lines of protoc that tell of a file, before place and reason."""
_FIELD_BYTES: Final = 16
_INDEXES_MAX: Final = 100
_VARINT_BYTES_MAX: Final = 5


class SchemaError(ValueError):
    """A schema that does not compile, or bytes that it does not fit."""

    def __init__(self, words: str) -> None:
        super().__init__(shortened(words))


def schema_id_of(data: bytes) -> int | None:
    """The id behind a zero byte; None: there is none."""
    if len(data) < HEADER_BYTES or data[0] != MAGIC:
        return None
    return int.from_bytes(data[1:HEADER_BYTES])


def decode_with(schema: Schema, data: bytes) -> Decoded:
    """The document in `data`, and the name of its type.

    :raises SchemaError: schema or bytes cannot be used.
    :raises BoundError: the document is beyond a bound.
    """
    schema_id = schema.schema_id
    try:
        if schema.kind is SchemaKind.JSON:
            text, name = data[HEADER_BYTES:].decode(), _title_of(schema.text)
            return json_decoded(text, Format.JSON_SCHEMA, schema_id=schema_id, type_name=name)
        is_avro = schema.kind is SchemaKind.AVRO
        document, name = (_decode_avro if is_avro else _decode_protobuf)(schema, data)
        kind = Format.AVRO if is_avro else Format.PROTOBUF
        name = shortened(name, NAME_MAX)
        return document_decoded(document, kind, schema_id=schema_id, type_name=name)
    except (SchemaError, BoundError):
        raise
    except RecursionError:
        raise BoundError.of_depth() from None
    except Exception as error:
        words = str(error) or type(error).__name__
        raise SchemaError(f"the bytes do not fit schema {schema_id}: {words}") from error


def _title_of(text: str) -> str:
    try:
        document = json_decoded(text).document
    except ValueError:
        return ""
    title = document.get("title") if isinstance(document, dict) else ""
    return shortened(title, NAME_MAX) if isinstance(title, str) else ""


_Compiled = TypeVar("_Compiled")


def _compiled_once(
    compile_schema: Callable[[Schema], _Compiled],
) -> Callable[[Schema], _Compiled]:
    """Keeps what was compiled; a schema that does not compile is not tried for every message."""
    kept = lru_cache(maxsize=COMPILED_MAX)(compile_schema)
    failed: dict[Schema, tuple[float, str]] = {}

    def compiled(schema: Schema) -> _Compiled:
        until_s, words = failed.get(schema, (0.0, ""))
        if time.monotonic() < until_s:
            raise SchemaError(words)
        try:
            return kept(schema)
        except Exception as error:
            words = str(error) or type(error).__name__
            if not isinstance(error, SchemaError):
                words = f"schema {schema.schema_id} does not compile: {words}"
            if len(failed) >= COMPILED_MAX:
                failed.clear()
            failed[schema] = (time.monotonic() + FAILED_S, words)
            raise SchemaError(words) from error

    return compiled


@_compiled_once
def _avro_reader(schema: Schema) -> AvroReader:
    import fastavro

    named: dict[str, Any] = {}
    try:
        for each in schema.references:
            fastavro.parse_schema(json_decoded(each.text).document, named_schemas=named)
        # Its depth is bounded before a library in C follows it.
        parsed = fastavro.parse_schema(json_decoded(schema.text).document, named_schemas=named)
        return AvroReader(parsed, named)
    except Exception as error:
        raise SchemaError(f"schema {schema.schema_id} is no Avro schema: {error}") from error


def _decode_avro(schema: Schema, data: bytes) -> tuple[Any, str]:
    reader = _avro_reader(schema)
    document, end = reader.document(data, HEADER_BYTES)
    if left := len(data) - end:
        raise ValueError(f"{counted(left, 'byte')} left over")
    return document, reader.name


def _decode_protobuf(schema: Schema, data: bytes) -> tuple[Any, str]:
    from google.protobuf import message, message_factory

    from control.messages.decoding.protobuf import ProtobufPrinter

    indexes, at = _indexes(data)
    found: Any = _protobuf_file(schema)
    for depth, index in enumerate(indexes):
        types = found.nested_types if depth else list(found.message_types_by_name.values())
        if index >= len(types):
            raise ValueError(f"there is no message type at {indexes}")
        found = types[index]
    if len(data) // 2 * _FIELD_BYTES * _fields_max(schema) > PROTOBUF_BYTES_MAX:
        raise BoundError(f"it may take more than {PROTOBUF_BYTES_MAX >> 30} GiB of memory to read")
    read = message_factory.GetMessageClass(found)()
    try:
        read.ParseFromString(data[at:])
    except message.DecodeError as error:
        if "MaxDepth" in str(error):
            raise BoundError("it is nested more deeply than Protobuf reads") from error
        raise ValueError(str(error)) from error
    return ProtobufPrinter().document(read), str(found.full_name)


def _indexes(data: bytes) -> tuple[list[int], int]:
    """The path to the message type, and where the content begins; a lone 0 is the first type."""
    count, at = _zigzag(data, HEADER_BYTES)
    if count == 0:
        return [0], at
    if not 0 < count <= _INDEXES_MAX:
        raise ValueError(f"{count} indexes of a message type")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        if index < 0:
            raise ValueError(f"message type {index}")
        indexes.append(index)
    return indexes, at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(_VARINT_BYTES_MAX):
        if at >= len(data):
            raise EOFError("it ends within the path of its message type")
        number |= (data[at] & 0x7F) << 7 * place
        at += 1
        if data[at - 1] < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise ValueError("an index of more than five bytes")


@lru_cache(maxsize=COMPILED_MAX)
def _fields_max(schema: Schema) -> int:
    """Counts the fields of a schema's types and imports; two bytes of a message can make one."""
    file = _protobuf_file(schema)
    types = [
        it for each in (file, *file.dependencies) for it in each.message_types_by_name.values()
    ]
    most = 1
    while types:
        most = max(most, *(len(each.fields) for each in types))
        types = [nested for each in types for nested in each.nested_types]
    return most


@_compiled_once
def _protobuf_file(schema: Schema) -> Any:
    """The file descriptor of a schema, in a pool of its own: two may have types of one name."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    name = f"schema-{schema.schema_id}.proto"
    texts = {each.name: each.text for each in schema.references} | {name: schema.text}
    files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema.schema_id, name, texts))
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)
        return pool.FindFileByName(name)
    except (TypeError, KeyError) as error:
        raise SchemaError(f"schema {schema.schema_id} cannot be used: {error}") from error


def _compiled(schema_id: int, name: str, texts: Mapping[str, str]) -> bytes:
    """A set of descriptors, from protoc in a process of its own: it reads what others wrote."""
    with tempfile.TemporaryDirectory(prefix="partiscope-schema-") as folder:
        root = Path(folder)
        for path, text in texts.items():
            try:
                _write_inside(root, path, text)
            except (OSError, ValueError) as error:
                told = f"schema {schema_id} refers to {path[:NAME_MAX]!r}, which is no file's name"
                why = getattr(error, "strerror", None) or error
                raise SchemaError(f"{told} ({why})") from error
        out = root / "descriptors.binary"
        words = ("-I", folder, "--include_imports", f"--descriptor_set_out={out}", name)
        try:
            done = subprocess.run(
                (sys.executable, "-P", "-m", "grpc_tools.protoc", *words),
                capture_output=True,
                text=True,
                timeout=COMPILE_TIMEOUT_S,
                check=False,
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            raise SchemaError(f"schema {schema_id} takes too long to compile") from None
        if done.returncode or not out.exists():
            lines = [line for line in done.stderr.splitlines() if _TOLD_OF in line]
            why = "".join(lines[:1]).replace(f"{folder}/", "") or "protoc gives no reason"
            raise SchemaError(f"schema {schema_id} does not compile: {why}")
        return out.read_bytes()


def _write_inside(root: Path, path: str, text: str) -> None:
    """A file at a path below a folder.

    :raises OSError: there can be no such file.
    :raises ValueError: the path leads elsewhere, or path or text are no UTF-8.
    """
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("empty, or not below its folder")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")
