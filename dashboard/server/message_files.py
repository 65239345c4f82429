"""All that a search finds as a file: ``/messages/orders.jsonl?q=text&limit=100000``."""

from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from control.kafka.connection.connections import settings_of
from control.messages.message_search import MessageSearch
from control.views.messages.files import WRITERS
from dashboard.cluster_actions import ClusterActionError
from dashboard.context import PageContext

RECORDS_MAX: Final = 10_000
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
        return StreamingResponse(
            WRITERS[kind](found.records, decoder),
            media_type=_TYPES[kind],
            headers={"content-disposition": f'attachment; filename="messages.{kind}"'},
        )
