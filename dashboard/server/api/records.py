"""Records for programs: searched as on the page, or one by its offset; decoded and masked alike."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Annotated, Any, Final

from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from control.kafka.records.browsing import Skipped
from control.kafka.records.reader import Bounds, Browsed, Looking, Start, StartKind
from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import Decoder
from control.messages.message_filters import FILTER_HELP, FilterTexts
from control.messages.message_search import SCAN_RECORDS, MessageSearch, chosen_partitions
from control.messages.patterns import FilterError
from control.model.ids import TopicPartition
from control.views.messages.details import message_json
from control.views.printable import json_text
from control.views.tables.messages import skipped_words
from dashboard.context import PageContext
from dashboard.server.api.errors import ApiError
from dashboard.server.api.tables import ClusterChoice
from dashboard.server.asker import GONE, AskerGoneError, while_asked

PATH: Final = "/api/v1/records"
AT_ONCE_MAX: Final = 5
"""Searches that run; more are refused."""
LIMIT_MAX: Final = 1_000
SCAN_MAX: Final = 10_000_000
_NEXT: Final = re.compile(r"([fb])((?:,[0-9]{1,10}:[0-9]{1,19})+)")
_WHOLE: Final = Looking(kept_bytes=None)
_ONE: Final = Bounds(records=1)
_JSON: Final = "application/json"
_NOT_READ: Final = "no record was read"


class FormatChoice(ClusterChoice):
    """How keys and values are decoded."""

    key_format: str = Field("", description="json, avro, …; empty: detected.")
    value_format: str = Field("", description="As key_format.")


class RecordsRequest(FormatChoice):
    """A search of one topic."""

    start: str = Field("", description="earliest, latest, an offset, -100, @TIME; empty: -100.")
    until: str = Field("", description="Only records before this time.")
    partition: str = Field("", description="Numbers with commas between; empty: all.")
    limit: int = Field(100, ge=1, le=LIMIT_MAX, description="Records at most.")
    scan: int = Field(SCAN_RECORDS, ge=1, le=SCAN_MAX, description="Records to look at, at most.")
    text: str = Field("", description=FILTER_HELP["text"])
    regex: str = Field("", description=FILTER_HELP["regex"])
    key: str | None = Field(None, description=FILTER_HELP["key"])
    header: str = Field("", description=FILTER_HELP["header"])
    json_path: str = Field("", description=FILTER_HELP["json_path"])
    cel: str = Field("", description=FILTER_HELP["cel"])
    next: str = Field("", description="`next` of the answer before: reading goes on there.")

    def search(self, topic: str) -> MessageSearch:
        """As all faces search."""
        return MessageSearch(
            topic=topic,
            start=self.start,
            until=self.until,
            partition=self.partition,
            limit=str(self.scan),
            key_format=self.key_format,
            value_format=self.value_format,
            texts=FilterTexts(
                **{each.name: getattr(self, each.name) for each in fields(FilterTexts)}
            ),
        )


class RecordsDocument(BaseModel):
    """Records that a search found, the oldest first."""

    records: list[dict[str, Any]] = Field(description="As `partiscope tail --json` tells them.")
    next: str = Field(description="Where reading goes on; empty: all was read.")
    scanned: int = Field(description="Records that were looked at.")
    unjudged: int = Field(description="Records that the filters could not judge.")
    skipped: list[str] = Field(description="What could not be read, and why.")


def register(api: FastAPI, context: PageContext) -> None:
    """A search of a topic, and one record of it."""
    running: set[object] = set()

    async def search(
        topic: str, request: Request, asked: Annotated[RecordsRequest, Query()]
    ) -> Response:
        with _one_more(running):
            try:
                body = await while_asked(request, _found(context, topic, asked))
            except AskerGoneError:
                return Response(status_code=GONE)
        return Response(body, media_type=_JSON)

    async def one(
        topic: str,
        partition: Annotated[int, Path(ge=0, lt=1 << 31)],
        offset: Annotated[int, Path(ge=0, lt=1 << 63)],
        asked: Annotated[FormatChoice, Query()],
    ) -> Response:
        with _one_more(running):
            body = await _record(context, TopicPartition(topic, partition), offset, asked)
        return Response(body, media_type=_JSON)

    api.add_api_route(
        f"{PATH}/{{topic}}", search, operation_id="records", tags=["Records"],
        summary="Records of a topic that pass filters; large ones are cut to 64 KiB a part",
        response_class=Response,
        responses={200: {"model": RecordsDocument, "description": "Decoded and raw."}},
    )  # fmt: skip
    api.add_api_route(
        f"{PATH}/{{topic}}/{{partition}}/{{offset}}", one, operation_id="record",
        tags=["Records"], summary="One record, whole", response_class=Response,
        responses={200: {"model": dict[str, Any], "description": "As `browse --json` tells it."}},
    )  # fmt: skip


@contextmanager
def _one_more(running: set[object]) -> Iterator[None]:
    """:raises ApiError: too many searches run, or a value makes no sense."""
    if len(running) >= AT_ONCE_MAX:
        raise ApiError(
            429, _NOT_READ, why=f"{AT_ONCE_MAX} searches run", next_step="try again later"
        )
    running.add(mark := object())
    try:
        yield
    except FilterError as error:
        name = "scan" if error.field == "limit" else error.field
        raise ApiError(
            422, _NOT_READ, why=error.words, next_step=f"correct {name}", fields={name: error.words}
        ) from error
    except ValueError as error:
        raise ApiError(409, _NOT_READ, why=str(error), next_step="ask another cluster") from error
    except OSError as error:
        raise ApiError(503, _NOT_READ, why=str(error), next_step="try again") from error
    finally:
        running.discard(mark)


async def _found(context: PageContext, topic: str, asked: RecordsRequest) -> str:
    settings, now_ms = context.actions.records(topic), context.now_ms()
    search = asked.search(topic)
    decoder = await asyncio.to_thread(search.decoder, settings)
    if asked.next:
        before = _before(topic, asked.next)
        found = await search.go_on(settings, before, now_ms=now_ms, limit=asked.limit)
    else:
        found = await search.read(settings, now_ms=now_ms, limit=asked.limit)
    return await asyncio.to_thread(_document, found, decoder)


def _document(found: Browsed, decoder: Decoder) -> str:
    skipped = [*skipped_words(found.skipped)]
    if found.outside_words:
        skipped.insert(0, found.outside_words)
    return json_text({
        "records": [_told(record, decoder) for record in found.records],
        "next": _next(found),
        "scanned": found.read_count,
        "unjudged": found.unjudged_count,
        "skipped": skipped,
    })  # fmt: skip


def _told(record: FetchedRecord, decoder: Decoder) -> dict[str, Any]:
    told = message_json(record, decoder.record(record))
    return {**told, "is_cut": record.whole is not None}


def _next(found: Browsed) -> str:
    places = [f",{key.partition}:{offset}" for key, offset in sorted(found.rest.items())]
    return f"{'b' if found.is_backward else 'f'}{''.join(places)}" if places else ""


def _before(topic: str, text: str) -> Browsed:
    """:raises FilterError: no answer has told this."""
    matched = _NEXT.fullmatch(text)
    if matched is None:
        raise FilterError("next", "it is none that an answer has told")
    places = [place.split(":") for place in matched[2].split(",")[1:]]
    rest = {TopicPartition(topic, int(number)): int(at) for number, at in places}
    if any(key.partition >> 31 or at >> 63 for key, at in rest.items()):
        raise FilterError("next", "it is none that an answer has told")
    return Browsed(
        records=(),
        read_count=0,
        read_bytes=0,
        skipped=Skipped(),
        rest=rest,
        is_backward=matched[1] == "b",
    )


async def _record(
    context: PageContext, key: TopicPartition, offset: int, asked: FormatChoice
) -> str:
    async with context.actions.reader(key.topic) as reader:
        chosen_partitions(await reader.partitions(key.topic), str(key.partition))
        start = Start(kind=StartKind.OFFSET, value=offset)
        found = await reader.browse([key], start, limit=1, looking=_WHOLE, bounds=_ONE)
    record = next((it for it in found.records if it.offset == offset), None)
    if record is None:
        why = "; ".join(skipped_words(found.skipped)) or "it was deleted, or never written"
        raise ApiError(
            404, f"there is no record {key} @ {offset}", why=why, next_step="name another offset"
        )
    search = MessageSearch(
        topic=key.topic, key_format=asked.key_format, value_format=asked.value_format
    )
    settings = context.actions.bootstrap

    def told() -> str:
        return json_text(_told(record, search.decoder(settings)))

    return await asyncio.to_thread(told)
