"""Records from lines: ``KEY<tab>VALUE``, ``VALUE``, or a JSON object as ``tail --json`` writes it.

Lines end with a line feed; a carriage return before it belongs to the ending, not to the value.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from broker.named_file import NamedFileError, read_bytes
from control.kafka.records.producer import OutgoingRecord
from control.messages.decoding.json_text import WrittenNumber, as_written_decoder, compact_json
from control.messages.produce_session import KeyAndValue

LINES_MAX: Final = 1_000_000
"""Of a file that is held in memory as a whole."""
LINE_BYTES_MAX: Final = 64 << 20
"""No broker takes a record of this size; a longer line is refused instead of being held."""
TAB: Final = b"\t"
_FIELDS: Final = frozenset({"key", "value", "headers", "partition", "timestamp_ms"})
_READ_ONLY_FIELDS: Final = frozenset(
    {
        "topic", "offset", "timestamp_type", "decoded", "size_bytes", "codec", "magic", "crc",
        "crc_is_valid", "transaction", "batch", "masked",
    }
)  # fmt: skip
"""What ``tail --json`` tells besides; the topic is the one that is sent to."""
Header = tuple[str, bytes | None]
_DIGITS_MAX: Final = 100
_RANGES: Final = {"partition": (0, (1 << 31) - 1), "timestamp_ms": (-1, (1 << 63) - 1)}
"""A timestamp of -1 is none, as Kafka has it."""
_BLANKS: Final = re.compile(r"[ \t\r]*")


class LinesError(ValueError):
    """Lines that cannot be sent; the text says which and why."""


def lines_in(path: Path, what: str, *, takes_pipes: bool = False) -> list[bytes]:
    """The lines of a file that the operator names in ``what``.

    Raises:
        LinesError: it cannot be read; no line, or more than ``LINES_MAX``.
    """
    try:
        return lines_of(read_bytes(path, what, takes_pipes=takes_pipes), str(path))
    except NamedFileError as error:
        raise LinesError(str(error)) from error


def lines_of(data: bytes, name: str) -> list[bytes]:
    """The lines of a file that is called ``name``.

    Raises:
        LinesError: no line, or more than ``LINES_MAX``.
    """
    splitter = LineSplitter()
    lines = [*splitter.feed(data), *splitter.end()]
    if not lines or len(lines) > LINES_MAX:
        raise LinesError(f"{name} has {len(lines):,} lines; 1 to {LINES_MAX:,} can be sent at once")
    return lines


def records_of(lines: Iterable[bytes]) -> tuple[KeyAndValue, ...]:
    """Keys (None: none) and values, in the lines' order."""
    return tuple(_key_and_value(line, TAB) for line in lines)


class LineSplitter:
    """Cuts a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in ``chunk``.

        Raises:
            LinesError: a line is longer than ``LINE_BYTES_MAX``.
        """
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > LINE_BYTES_MAX:
            raise LinesError(
                f"a line is longer than {LINE_BYTES_MAX >> 20} MiB: no broker takes it"
            )
        return [line.removesuffix(b"\r") for line in lines]

    def end(self) -> list[bytes]:
        """The last line, where no line feed ends it."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest.removesuffix(b"\r")] if rest else []


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How a line becomes a record."""

    topic: str
    separator: bytes | None = TAB
    """Between key and value; None: a line is a value."""
    is_json: bool = False

    def record(self, line: bytes, number: int) -> OutgoingRecord:
        """The record of a line; ``number`` counts from 1.

        Raises:
            LinesError: it is no JSON record.
        """
        if self.is_json:
            try:
                return _json_record(self.topic, line)
            except (ValueError, RecursionError) as error:
                raise LinesError(f"line {number:,}: {_why(error)}") from error
        key, value = _key_and_value(line, self.separator)
        return OutgoingRecord(topic=self.topic, key=key, value=value)


def _key_and_value(line: bytes, separator: bytes | None) -> KeyAndValue:
    if separator is None or separator not in line:
        return None, line
    key, _, value = line.partition(separator)
    return key, value


def _json_record(topic: str, line: bytes) -> OutgoingRecord:
    text = line.decode()
    if text.startswith("\ufeff"):
        raise ValueError("it begins with a byte order mark (BOM); save the file without one")
    found = _JSON.decode(text)
    if not isinstance(found, dict):
        raise ValueError(f'{_quoted(found)} is no JSON object such as {{"value": "hello"}}')
    if found.get("masked"):
        raise ValueError("it was read with fields masked: sending it would write ***")
    for name in found.keys() - _FIELDS - _READ_ONLY_FIELDS:
        near = get_close_matches(name, _FIELDS, n=1)
        meant = (
            f"; did you mean {near[0]}?" if near else f"; there are {', '.join(sorted(_FIELDS))}"
        )
        raise ValueError(f"unknown field {name}{meant}")
    sent = {name: found[name] for name in _FIELDS & found.keys()}
    _check_doubled(found if isinstance(found, _Doubled) else sent)
    return OutgoingRecord(
        topic=topic,
        key=_content(found, "key", text),
        value=_content(found, "value", text),
        headers=_headers(found.get("headers")),
        partition=_number(found, "partition"),
        timestamp_ms=_number(found, "timestamp_ms"),
    )


class _Doubled(dict[str, Any]):
    """An object with a name that is there twice: refused where it is sent, not where it is only
    told, as in what ``tail --json`` decodes."""

    twice = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        found = _Doubled(found)
        found.twice = next(name for name in names if names.count(name) > 1)
    return found


def _check_doubled(found: object) -> None:
    if isinstance(found, _Doubled):
        twice = _quoted(found.twice)
        raise ValueError(f"{twice} is there twice in an object; only one would be sent")
    if isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            _check_doubled(each)


_JSON: Final = as_written_decoder(object_pairs_hook=_object)


def _content(found: dict[str, Any], name: str, line: str = "") -> bytes | None:
    """Text as UTF-8, ``{"base64": …}`` as those bytes, null as null, other JSON as it is written.

    Without the ``line`` it is written as compact JSON.
    """
    match found.get(name):
        case None:
            return None
        case str(text):
            return text.encode()
        case {"base64": str(encoded), **rest} if not rest:
            return b64decode(encoded, validate=True)
        case content:
            compact = compact_json(content)  # also refuses what is no JSON
            return (_written(line, name) if line else compact).encode()


def _written(line: str, name: str) -> str:
    """A member of an object as it is written there; the line is valid JSON."""
    at = line.index("{") + 1
    while True:
        told, at = _JSON.raw_decode(line, line.index('"', at))
        at = _blanks_end(line, line.index(":", at) + 1)
        _, end = _JSON.raw_decode(line, at)
        if told == name:
            return line[at:end]
        at = end


def _blanks_end(line: str, at: int) -> int:
    blanks = _BLANKS.match(line, at)
    return at if blanks is None else blanks.end()


def _headers(found: Any) -> tuple[Header, ...]:
    """Headers from a mapping, from pairs, or from objects with name and value."""
    match found:
        case None:
            return ()
        case dict():
            return tuple(_header([name, value]) for name, value in found.items())
        case list():
            return tuple(map(_header, found))
    raise ValueError(f"headers {_quoted(found)} are no list of name and value pairs")


def _header(found: Any) -> Header:
    match found:
        case [str(name), value]:
            return _sent(name), _content({"value": value}, "value")
        case {"name": str(name), **rest} if rest.keys() <= {"value"}:
            return _sent(name), _content({str(field): rest[field] for field in rest}, "value")
    raise ValueError(f"header {_quoted(found)} is no pair of name and value")


def _sent(name: str) -> str:
    name.encode()  # half a surrogate pair has no bytes
    return name


def _number(found: dict[str, Any], name: str) -> int | None:
    number = found.get(name)
    if number is None:
        return None
    if not isinstance(number, WrittenNumber) or not re.fullmatch("-?[0-9]+", number.text):
        raise ValueError(f"{name} {_quoted(number)} is no whole number")
    low, high = _RANGES[name]
    if len(number.text) > _DIGITS_MAX or not low <= int(number.text) <= high:
        raise ValueError(f"{name} {_quoted(number)} is not within {low} to {high}")
    return int(number.text)


def _why(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"not JSON ({error.msg} at character {error.pos + 1})"
        case RecursionError():
            return "not JSON that can be read (nested too deep)"
        case UnicodeDecodeError() | UnicodeEncodeError():
            return f'not UTF-8 ({error.reason}); write such bytes as {{"base64": "…"}}'
        case _:
            return str(error)


def _quoted(found: Any) -> str:
    text = compact_json(found)
    return text if len(text) <= 60 else f"{text[:60]}…"
