"""The tables as files: ``/export/partitions.csv?q=lag>0&sort=-lag&scope=orders&cols=lag``."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from control.views.plans import plan_files
from control.views.snapshots.snapshot import LISTS, list_page
from control.views.tables.export import ExportError, document, export
from control.views.tables.journal import exported, matching
from control.views.tables.query import TableQuery
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import displayed_snapshot
from dashboard.pages.reassignments.plan_map import find_plan
from dashboard.server.table_rows import (
    TableTurns,
    hides_internal,
    no_such_moment,
    no_such_table,
)

FILES_AT_ONCE_MAX: Final = 8
"""Further ones are refused meanwhile."""
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def register(server: FastAPI, context: PageContext) -> None:
    """One route for all tables, one for plans, one for the journal."""
    _register_plans(server, context)
    _register_journal(server, context)
    turns = TableTurns()
    sending = _Sending()

    @server.get("/export/{kind}.{format}", include_in_schema=False)
    async def answer(kind: str, format: str, request: Request) -> Response:  # noqa: A002
        if kind not in LISTS:
            return no_such_table(kind)
        if sending.count >= FILES_AT_ONCE_MAX:
            return PlainTextResponse(
                f"429: {sending.count} files are being loaded; wait for one to end\n", 429
            )
        make = partial(_file, context, kind, format, request.query_params, sending)
        return await turns.answer(kind, request, make)


class _Sending:
    """Counts files on their way: a slow reader's table stays in memory meanwhile."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, pieces: Iterator[str]) -> Iterator[str]:
        """The pieces of one file."""
        self.count += 1
        try:
            yield from pieces
        finally:
            self.count -= 1


def _file(
    context: PageContext,
    kind: str,
    suffix: str,
    given: Mapping[str, str],
    sending: _Sending,
) -> Response:
    if refusal := no_such_moment(context, given):
        return refusal
    query = TableQuery(
        filter=given.get("q", ""),
        sort=given.get("sort", ""),
        columns=given.get("cols", ""),
        hides_internal=hides_internal(given),
    )
    snapshot = displayed_snapshot(context, {"at": given.get("at", "")})
    scope = given.get("scope")
    if snapshot.why_empty:
        return PlainTextResponse(f"404: {snapshot.why_empty}\n", 404)
    try:
        pieces = export(lambda it: list_page(snapshot, kind, it, scope), query, format=suffix)
    except ExportError as error:
        return PlainTextResponse(f"400: {error}\n", 400)
    name = f'attachment; filename="{kind}.{suffix}"'
    return StreamingResponse(
        sending.counted(pieces),
        media_type=_TYPES[suffix],
        headers={"content-disposition": name},
    )


def _register_journal(server: FastAPI, context: PageContext) -> None:
    @server.get("/export/journal.{format}", include_in_schema=False)
    def answer(format: str, q: str = "") -> Response:  # noqa: A002
        if format not in _TYPES:
            return PlainTextResponse(f"400: a file is one of {', '.join(_TYPES)}\n", 400)
        pieces = document(exported(matching(context.actions.moves.journal, q)), format)
        name = f'attachment; filename="journal.{format}"'
        return StreamingResponse(
            pieces, media_type=_TYPES[format], headers={"content-disposition": name}
        )


def _register_plans(server: FastAPI, context: PageContext) -> None:
    @server.get("/export/plan", include_in_schema=False)
    def answer(name: str, way: str = "there") -> Response:
        kept = find_plan(context, name)
        if kept is None:
            return PlainTextResponse("404: this plan is gone; plan again\n", 404)
        there, back = plan_files(kept.alternative.proposal).items()
        file, text = back if way == "back" else there
        disposition = f'attachment; filename="{file}"'
        return Response(
            text, media_type=_TYPES["json"], headers={"content-disposition": disposition}
        )
