"""All that a search finds as a file: ``/messages/orders.jsonl?q=text&limit=100000``."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.reader import Browsed
from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import Decoder
from control.messages.message_search import MessageSearch
from control.messages.whole_record import whole_record
from control.views.messages.files import HEADS, WRITERS
from control.views.tables.messages import skipped_words, unjudged_words
from dashboard.cluster_actions import ClusterActionError
from dashboard.context import PageContext
from dashboard.server.asker import GONE, AskerGoneError, while_asked

RECORDS_MAX: Final = 10_000
FILES_AT_ONCE_MAX: Final = 5
PART: Final = "-part"
"""In the name of a file that lacks messages."""
LACKS: Final = "x-partiscope-lacks"
"""Header of such a file: which messages it lacks, and why."""
_HEADER_CHARACTERS_MAX: Final = 1_000
FILES: Final = {"jsonl": "JSON lines", "csv": "CSV"}
_TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


def register(server: FastAPI, context: PageContext) -> None:
    """One route for both kinds of file."""
    at_once = _AtOnce()

    @server.get("/messages/{topic}.{kind}", include_in_schema=False)
    async def answer(topic: str, kind: str, request: Request) -> Response:
        if kind not in WRITERS:
            return PlainTextResponse(
                f"404: no file {kind!r}; there are {', '.join(WRITERS)}\n", 404
            )
        search = MessageSearch.of_query(topic, request.query_params)
        try:
            settings = settings_of(context.actions.records(topic))
            decoder = search.decoder(settings)
            with at_once.one_more():
                reading = search.read(settings, now_ms=context.now_ms(), limit=RECORDS_MAX)
                found = await while_asked(request, reading)
        except AskerGoneError:
            return Response(status_code=GONE)
        except TooManyFilesError as error:
            return PlainTextResponse(f"429: {error}\n", 429)
        except ClusterActionError as error:
            return PlainTextResponse(f"400: {error}\n", 400)
        lacks = _lacking(found, search.scan_max)
        name = f"messages{PART if lacks else ''}.{kind}"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(
            _lines(kind, found.records, decoder, settings),
            media_type=_TYPES[kind],
            headers=headers | ({LACKS: lacks} if lacks else {}),
        )


class TooManyFilesError(Exception):
    """As many files are made as may be."""


class _AtOnce:
    """Counts searches for files that run."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """One runs.

        :raises TooManyFilesError: there are too many.
        """
        if self._count >= FILES_AT_ONCE_MAX:
            words = f"{FILES_AT_ONCE_MAX} files of searches are being made"
            raise TooManyFilesError(f"{words}; wait for one of them, or end it")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


def _lacking(found: Browsed, scan_max: int) -> str:
    """Names the messages that a file lacks, in ASCII; empty: it has all."""
    lacks = [*skipped_words(found.skipped)]
    if found.unjudged_count:
        lacks.append(unjudged_words(found.unjudged_count, found.unjudged_reason))
    if found.rest and len(found.records) >= RECORDS_MAX:
        lacks.insert(0, f"a file holds {RECORDS_MAX:,} messages at most, and there are more")
    elif found.rest and found.read_count >= scan_max:
        words = f"{scan_max:,} records were scanned, and there are more: write a higher limit"
        lacks.insert(0, words)
    return "; ".join(lacks).encode("ascii", "backslashreplace").decode()[:_HEADER_CHARACTERS_MAX]


async def _lines(
    kind: str, records: Sequence[FetchedRecord], decoder: Decoder, settings: KafkaSettings
) -> AsyncIterator[str]:
    """Each record whole: large ones were cut while they were searched. One that cannot be read
    whole breaks the download off, which a browser tells."""
    yield HEADS[kind]
    for record in records:
        whole = await whole_record(settings, record)
        yield await asyncio.to_thread(WRITERS[kind], whole, decoder)
