"""Formats of keys and values, and what decoding one gives."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from control.messages.decoding.json_text import pretty_json

DEPTH_MAX: Final = 200
VALUES_MAX: Final = 200_000
"""Of a document of a binary format: its bytes may claim many more than they are."""
_DIGITS_MAX: Final = 400
"""A whole number of JSON with more digits is compared as infinite."""


class Format(StrEnum):
    """Names as settings, paths and flags have them."""

    AUTO = "auto"
    """Detected: a known schema, JSON, text, else hexadecimal."""
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON_SCHEMA = "json-schema"
    MSGPACK = "msgpack"
    STRING = "string"
    HEX = "hex"
    BASE64 = "base64"
    KAFKA = "kafka"
    """Records of Kafka's internal topics."""


FORMATS: Final = tuple(each for each in Format if each is not Format.KAFKA)
"""Those to choose from; internal topics have theirs without a choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A key or value as its format reads it.

    Where `error` stands, the format could not read it, and the text is what the bytes show by
    themselves.
    """

    format: Format
    written: str | None = None
    """Text, hexadecimal, base64, or JSON as it was written; None: the document is all there is."""
    document: Any = None
    is_document: bool = False
    schema_id: int | None = None
    type_name: str = ""
    """Of its schema."""
    error: str = ""

    @property
    def text(self) -> str:
        """All of it; JSON where it is a document."""
        if self.written is not None:
            return self.written
        text = json.dumps(self.document, ensure_ascii=False)
        # A schema may name a field by half a surrogate pair, which no file can hold unescaped.
        return text.encode(errors="backslashreplace").decode()

    @property
    def pretty(self) -> str:
        """A document with one entry a line."""
        return pretty_json(self.text) if self.is_document else self.text

    @property
    def label(self) -> str:
        """``avro, schema 12, shop.Order``."""
        schema = "" if self.schema_id is None else f"schema {self.schema_id}"
        return ", ".join(filter(None, (self.format.value, schema, self.type_name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """The chosen formats of a topic's keys and values."""

    key: Format = Format.AUTO
    value: Format = Format.AUTO


def document_decoded(
    document: Any, kind: Format, *, schema_id: int | None = None, type_name: str = ""
) -> Decoded:
    """A document of a binary format, in JSON's types: its JSON is our own."""
    return Decoded(
        format=kind,
        document=document,
        is_document=True,
        schema_id=schema_id,
        type_name=type_name,
    )


def json_decoded(
    text: str, kind: Format = Format.JSON, *, schema_id: int | None = None, type_name: str = ""
) -> Decoded:
    """JSON as it was written.

    :raises BoundError: it is nested too deeply.
    :raises ValueError: it is none.
    """
    try:
        document = json.loads(text, parse_int=_whole, parse_constant=_no_number)
    except RecursionError:
        raise BoundError.of_depth() from None
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _check_depth(document)
    return Decoded(
        format=kind,
        written=text,
        document=document,
        is_document=True,
        schema_id=schema_id,
        type_name=type_name,
    )


class BoundError(ValueError):
    """A document beyond the bounds of what is decoded."""

    @classmethod
    def of_depth(cls) -> BoundError:
        """It is nested more deeply than anybody reads."""
        return cls(f"it is nested more than {DEPTH_MAX} deep")

    @classmethod
    def of_values(cls) -> BoundError:
        """It holds more than is held in memory."""
        return cls(f"it holds more than {VALUES_MAX:,} values")


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS_MAX else float(digits)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEPTH_MAX):
        nested = [each for each in level if isinstance(each, dict | list)]
        level = [
            child
            for each in nested
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise BoundError.of_depth()


def jsonable(value: Any, depth: int = 0, left: list[int] | None = None) -> Any:
    """The value in JSON's types: bytes as text or ``{"base64": …}``, times as ISO 8601, numbers
    that JSON lacks as words.

    :raises BoundError: it is nested too deeply, or holds too many values; `left` counts them.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Mapping | Sequence):
        return _scalar(value)
    left = [VALUES_MAX] if left is None else left
    left[0] -= len(value)
    if depth > DEPTH_MAX:
        raise BoundError.of_depth()
    if left[0] < 0:
        raise BoundError.of_values()
    if isinstance(value, Mapping):
        return {_name(name): jsonable(each, depth + 1, left) for name, each in value.items()}
    return [jsonable(each, depth + 1, left) for each in value]


def _scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    try:  # MessagePack's moments
        return value.to_datetime().isoformat()
    except (AttributeError, ValueError, OverflowError):
        return str(value)


def _name(name: Any) -> str:
    if isinstance(name, str):
        return name
    plain = jsonable(name)
    return plain if isinstance(plain, str) else json.dumps(plain)


def format_of(text: str) -> Format:
    """The format that a flag, path or field names; empty: detected.

    :raises ValueError: there is none of this name.
    """
    if not text.strip():
        return Format.AUTO
    try:
        found = Format(text.strip().lower())
    except ValueError:
        found = Format.KAFKA
    if found not in FORMATS:
        raise ValueError(f"{text!r} is no format; there are {', '.join(FORMATS)}")
    return found
