"""One message in full for all screens: facts, decoded and raw content, JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from control.access.masking import MASK
from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import DecodedRecord
from control.messages.decoding.formats import Decoded, Format
from control.messages.keys import is_description
from control.messages.templates import replaces
from control.operations.checks import header_pairs
from control.operations.checks import headers as header_problem
from control.views import format as text
from control.views.paths import ViewPath
from control.views.printable import NULL, JsonPart, printable, readable, told_bytes
from control.views.tables.messages import moment_text
from control.views.tables.rows import SHAPES, Tone

_NO_PRODUCER = -1
_UNTYPED: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def message_facts(record: FetchedRecord) -> Iterator[tuple[str, str]]:
    """Place, time, sizes and batch, as names and words; headers are not among them."""
    yield "partition", f"{printable(record.topic)}-{record.partition}"
    yield "offset", text.count_text(record.offset)
    yield "time", f"{moment_text(record.timestamp_ms)} ({timestamp_type(record)})"
    sizes = f"key {text.bytes_text(record.key_bytes)}, value {text.bytes_text(record.value_bytes)}"
    yield "size", f"{sizes}, {text.plural_text(len(record.headers), 'header')}"
    if record.masked is not None:
        yield "masked", f"fields show as {MASK}; sizes of key and value count them so"
    if record.transaction:
        yield "transaction", record.transaction.value
    yield "batch", _batch_words(record)
    if getattr(record.batch, "producer_id", _NO_PRODUCER) != _NO_PRODUCER:
        yield "producer", _producer_words(record)


def timestamp_type(record: FetchedRecord) -> str:
    """Kafka's word for who set the time."""
    return "LogAppendTime" if record.batch.is_log_append_time else "CreateTime"


def _batch_words(record: FetchedRecord) -> str:
    batch = record.batch
    crc = "valid" if record.crc_is_valid else f"{SHAPES[Tone.CRITICAL]} wrong"
    count = f"{text.plural_text(batch.records_count, 'record')} from offset {batch.base_offset:,}"
    size = text.bytes_text(batch.size_bytes)
    return (
        f"{count}, {size}, {record.codec_name}, format {batch.magic}, "
        f"leader epoch {batch.partition_leader_epoch}, CRC {crc}"
    )


def _producer_words(record: FetchedRecord) -> str:
    batch = record.batch
    words = f"id {batch.producer_id}, epoch {batch.producer_epoch}"
    if batch.base_sequence >= 0:
        words += f", sequence {batch.base_sequence + record.offset - batch.base_offset}"
    return words + (", transactional" if batch.is_transactional else "")


def decoded_words(decoded: Decoded | None) -> str:
    """All of a key or value, a document with one entry a line."""
    return NULL if decoded is None else printable(decoded.pretty, keeps_lines=True)


def copied_text(data: bytes, decoded: Decoded) -> str:
    """A key or value for a clipboard: text as it was written, never as it is displayed; the
    document that other bytes decode to, else these as the chosen format writes them."""
    is_binary = decoded.is_document and decoded.format is not Format.JSON
    if is_binary or decoded.format in (Format.HEX, Format.BASE64):
        return decoded.text
    try:
        return data.decode()
    except UnicodeDecodeError:
        return decoded.text


def whole_words(decoded: Decoded) -> str:
    """All of a key or value to be read, after the reason where its format does not fit."""
    words = decoded_words(decoded)
    return f"▲ {printable(decoded.error)}; the bytes:\n{words}" if decoded.error else words


def raw_words(data: bytes | None, *, is_cut: bool = False) -> str:
    """The same as its bytes show it."""
    return readable(data, keeps_lines=True, is_cut=is_cut)


def message_json(record: FetchedRecord, decoded: DecodedRecord) -> dict[str, Any]:
    """A message as JSON: raw as before decoding, and what it decodes to."""
    batch = record.batch
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": timestamp_type(record),
        "key": told_bytes(record.key),
        "value": told_bytes(record.value),
        "headers": [[name, told_bytes(value)] for name, value in record.headers],
        "decoded": {"key": _decoded_json(decoded.key), "value": _decoded_json(decoded.value)},
        "size_bytes": record.size_bytes,
        "codec": record.codec_name,
        "magic": batch.magic,
        # A checksum betrays what is masked: who guesses it can try until it fits.
        "crc": batch.crc if record.masked is None else None,
        "crc_is_valid": record.crc_is_valid,
        "transaction": record.transaction.value or None,
        "masked": record.masked is not None,
        "batch": {
            "base_offset": batch.base_offset,
            "records": batch.records_count,
            "size_bytes": batch.size_bytes,
            "leader_epoch": batch.partition_leader_epoch,
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "is_transactional": batch.is_transactional,
        },
    }


def _decoded_json(decoded: Decoded | None) -> dict[str, Any] | None:
    """None where there is nothing to decode: null, or bytes that no format fits."""
    if decoded is None:
        return None
    told: dict[str, Any] = {"format": decoded.format.value}
    if decoded.schema_id is not None:
        told |= {"schema_id": decoded.schema_id, "type": decoded.type_name}
    if decoded.is_document:
        told["document"] = JsonPart(decoded.text)
    if decoded.error:
        told["error"] = decoded.error
    return told


def resend_path(record: FetchedRecord) -> tuple[ViewPath | None, str]:
    """The produce view filled in with this message; None, and why, where its form cannot hold it.

    The form takes text, in which ``{n}`` and the like are replaced.
    """
    try:
        key, value = text_of(record.key), text_of(record.value)
        headers = tuple((name, header) for name, header in record.headers)
        told = ", ".join(f"{name}={text_of(header)}" for name, header in headers)
    except UnicodeDecodeError:
        return None, "it is no text: a form would change its bytes"
    if record.whole is not None:
        return None, "it is too large for a form"
    if record.masked is not None:
        return None, "fields of it are masked: what they hold would be lost"
    if header_problem(told) or header_pairs(told) != headers:
        return None, "the form cannot hold its headers as they are"
    if _UNTYPED.search(f"{key or ''}{value or ''}{told}") or "\n" in f"{key or ''}{told}":
        return None, "a form would change its line breaks or control characters"
    if "" in (key, value) or is_description(key) or replaces(f"{key or ''}{value or ''}"):
        return None, "the form would read a part of it as a placeholder, or as empty"
    query = {
        "key": key or "",
        "value": value or "",
        "is_tombstone": "yes" if value is None else "",
        "partition": str(record.partition),
        "headers": told,
    }
    return ViewPath(view="produce", params={"topic": record.topic}, query=query), ""


def text_of(data: bytes | None) -> str | None:
    """The text of a key, value or header.

    :raises UnicodeDecodeError: it is none.
    """
    return None if data is None else data.decode()
