"""All that a search finds as a file: ``/messages/orders.jsonl?q=text&limit=100000``."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import Decoder
from control.messages.message_search import MessageSearch
from control.messages.whole_record import whole_record
from control.views.messages.files import HEADS, WRITERS
from dashboard.cluster_actions import ClusterActionError
from dashboard.context import PageContext

RECORDS_MAX: Final = 10_000
PART: Final = "-part"
"""In the name of a file that lacks messages: more than these, or not scanned, or not read."""
FILES: Final = {"jsonl": "JSON lines", "csv": "CSV"}
_TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


def register(server: FastAPI, context: PageContext) -> None:
    """One route for both kinds of file."""

    @server.get("/messages/{topic}.{kind}", include_in_schema=False)
    async def answer(topic: str, kind: str, request: Request) -> Response:
        if kind not in WRITERS:
            return PlainTextResponse(
                f"404: no file {kind!r}; there are {', '.join(WRITERS)}\n", 404
            )
        search = MessageSearch.of_query(topic, request.query_params)
        try:
            settings = settings_of(context.actions.bootstrap)
            decoder = search.decoder(settings)
            found = await search.read(settings, now_ms=context.now_ms(), limit=RECORDS_MAX)
        except ClusterActionError as error:
            return PlainTextResponse(f"400: {error}\n", 400)
        is_cut = bool(found.skipped.unread) or (
            bool(found.rest)
            and (len(found.records) >= RECORDS_MAX or found.read_count >= search.scan_max)
        )
        name = f"messages{PART if is_cut else ''}.{kind}"
        return StreamingResponse(
            _lines(kind, found.records, decoder, settings),
            media_type=_TYPES[kind],
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )


async def _lines(
    kind: str, records: Sequence[FetchedRecord], decoder: Decoder, settings: KafkaSettings
) -> AsyncIterator[str]:
    """Each record whole: large ones were cut while they were searched. One that cannot be read
    whole breaks the download off, which a browser tells."""
    yield HEADS[kind]
    for record in records:
        whole = await whole_record(settings, record)
        yield await asyncio.to_thread(WRITERS[kind], whole, decoder)
