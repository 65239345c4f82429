"""One record's key, value or header as it is: ``/record/orders/3/1200?part=value``; or all of it,
decoded, with ``part=json``.

Shown as plain text in a tab of its own, or kept as a file: a page does not carry 25 MB.
"""

import asyncio
from typing import Annotated, Final

from fastapi import FastAPI, Path
from fastapi.responses import PlainTextResponse, Response

from control.kafka.connection.connections import settings_of
from control.kafka.errors import KafkaPortError
from control.kafka.records.reader import Bounds, Browsed, Looking, Start, StartKind
from control.kafka.records.record import FetchedRecord
from control.messages.message_search import MessageSearch
from control.model.ids import TopicPartition
from control.operations.errors import NoRightError
from control.views.messages.details import copied_text, message_json, whole_words
from control.views.printable import json_text
from control.views.tables.messages import skipped_words
from dashboard.context import PageContext

_WHOLE: Final = Looking(kept_bytes=None)
_ONE: Final = Bounds(records=1)
_TEXT: Final = "text/plain; charset=utf-8"
_BYTES: Final = "application/octet-stream"
COPIED, LAID_OUT = "copied", "laid-out"
_TEXTS: Final = (COPIED, LAID_OUT)


def register(server: FastAPI, context: PageContext) -> None:
    """One route; ``keep=yes`` makes a file of it, ``text=copied`` what a clipboard takes of it,
    ``text=laid-out`` what is read of it."""

    @server.get("/record/{topic}/{partition}/{offset}", include_in_schema=False)
    async def answer(
        topic: str,
        partition: Annotated[int, Path(ge=0, lt=1 << 31)],
        offset: Annotated[int, Path(ge=0, lt=1 << 63)],
        *,
        part: str = "value",
        keep: str = "",
        text: str = "",
        kf: str = "",
        vf: str = "",
    ) -> Response:
        try:
            found = await _read(context, TopicPartition(topic, partition), offset)
        except NoRightError as error:
            return PlainTextResponse(f"403: {error}\n", 403)
        except (KafkaPortError, ValueError) as error:
            return PlainTextResponse(f"502: {error}\n", 502)
        record = next((record for record in found.records if record.offset == offset), None)
        if record is None:
            if told := "; ".join(skipped_words(found.skipped)):
                return PlainTextResponse(f"502: {told}\n", 502)
            words = f"404: {topic}-{partition} has no record at offset {offset}\n"
            return PlainTextResponse(words, 404)
        search = MessageSearch(topic=topic, key_format=kf, value_format=vf)
        content: bytes | None
        if part == "json":
            content = await asyncio.to_thread(_document, context, search, record)
        elif text in _TEXTS and part in ("key", "value"):
            content = await asyncio.to_thread(_text, context, search, record, (part, text))
        else:
            content = part_of(record, part)
        if content is None:
            return PlainTextResponse(f"404: the record has no {part!r}, or it is null\n", 404)
        name = f"{topic}-{partition}-{offset}.{part.replace(':', '-')}"
        kept = {"content-disposition": f'attachment; filename="{name}"'} if keep else {}
        is_text = not keep and (bool(text) or _is_text(content))
        return Response(content, media_type=_TEXT if is_text else _BYTES, headers=kept)


def _document(context: PageContext, search: MessageSearch, record: FetchedRecord) -> bytes:
    decoded = search.decoder(settings_of(context.actions.bootstrap)).record(record)
    return (json_text(message_json(record, decoded), indent=2) + "\n").encode()


def _text(
    context: PageContext, search: MessageSearch, record: FetchedRecord, asked: tuple[str, str]
) -> bytes | None:
    part, text = asked
    decoder = search.decoder(settings_of(context.actions.bootstrap))
    decoded = decoder.key(record) if part == "key" else decoder.value(record)
    data = part_of(record, part)
    if data is None or decoded is None:
        return None
    words = copied_text(data, decoded) if text == COPIED else whole_words(decoded)
    return words.encode(errors="backslashreplace")


def part_of(record: FetchedRecord, part: str) -> bytes | None:
    """``key``, ``value`` or ``header:N``, counted from 0; None where there is none."""
    if part in ("key", "value"):
        return record.key if part == "key" else record.value
    name, _, number = part.partition(":")
    if name == "header" and number.isdecimal() and int(number) < len(record.headers):
        return record.headers[int(number)][1]
    return None


async def _read(context: PageContext, key: TopicPartition, offset: int) -> Browsed:
    async with context.actions.reader(key.topic) as reader:
        start = Start(kind=StartKind.OFFSET, value=offset)
        return await reader.browse([key], start, limit=1, looking=_WHOLE, bounds=_ONE)


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
