"""Rows of messages for both screens: one record of a topic, as it can be read."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from control.kafka.reader import FetchedRecord
from control.views import format as text
from control.views.columns import Column
from control.views.rows import Cell, Row, Tone

SHOWN_CHARACTERS_MAX: Final = 400
"""Of a key or value in a list; the whole of it stands in its details."""
NULL: Final = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow(Row):
    """One record; its key is ``topic-partition@offset``."""

    partition: Cell
    offset: Cell
    at: Cell
    record_key: Cell
    record_value: Cell
    size: Cell
    codec: Cell
    headers: Cell


MESSAGE_COLUMNS: Final = (
    Column(id="partition", title="partition", rank=1),
    Column(id="offset", title="offset", rank=1),
    Column(id="at", title="time", why="Of the record, local time", is_number=False, rank=2),
    Column(id="record_key", title="key", is_number=False, rank=2),
    Column(id="record_value", title="value", is_number=False, rank=1),
    Column(id="size", title="size", why="Key and value, without overhead", rank=3),
    Column(id="codec", title="codec", why="Compression of its batch", is_number=False, rank=3),
    Column(id="headers", title="headers", is_number=False, rank=3),
)


def message_row(record: FetchedRecord) -> MessageRow:
    """A record in one line."""
    return MessageRow(
        key=f"{record.topic}-{record.partition}@{record.offset}",
        path=f"browse/{record.topic}?partition={record.partition}&offset={record.offset}",
        partition=Cell(record.partition, str(record.partition)),
        offset=Cell(record.offset, text.count_text(record.offset)),
        at=Cell(record.timestamp_ms, moment_text(record.timestamp_ms)),
        record_key=_bytes_cell(record.key),
        record_value=_bytes_cell(record.value),
        size=Cell(record.size_bytes, text.bytes_text(record.size_bytes)),
        codec=Cell(record.codec_name, record.codec_name),
        headers=Cell(len(record.headers), _headers_text(record)),
    )


def is_match(record: FetchedRecord, wanted: str) -> bool:
    """Whether key, value or a header holds the text, whatever its case."""
    parts = [record.key, record.value]
    for name, value in record.headers:
        parts += [name.encode(), value]
    return any(wanted.lower() in readable(part).lower() for part in parts if part is not None)


def readable(value: bytes | None) -> str:
    """Text where it is text, else its bytes in hexadecimal; ``null`` for null."""
    if value is None:
        return NULL
    try:
        words = value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()
    is_text = all(sign.isprintable() or sign in "\n\r\t" for sign in words)
    return words if is_text else "0x" + value.hex()


def moment_text(at_ms: int) -> str:
    """Date and time to the millisecond, local time of this machine; – where there is none.

    A producer that counts in another unit writes times beyond every calendar: the number as it is.
    """
    if at_ms < 0:
        return text.NONE
    try:
        at = datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
    return f"{at:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


def _bytes_cell(value: bytes | None) -> Cell:
    words = readable(value)
    cut = words if len(words) <= SHOWN_CHARACTERS_MAX else words[:SHOWN_CHARACTERS_MAX] + "…"
    return Cell(words, cut, Tone.MUTED if value is None else Tone.PLAIN)


def _headers_text(record: FetchedRecord) -> str:
    return ", ".join(f"{name}={readable(value)}" for name, value in record.headers) or text.NONE
