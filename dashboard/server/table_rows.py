"""The rows of the large tables, block by block, as the grids of the browser ask for them.

``/rows/partitions?from=200&to=300&q=lag>0&sort=-lag&scope=orders&at=…`` A plain request, not a
callback: what Dash does for an answer, on both sides, costs more than the rows themselves, and
who scrolls must not wait for the page's other news.
"""

import asyncio
import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from control.model.units import counted
from control.views.snapshots.snapshot import LISTS, list_page
from control.views.tables.column import Column
from control.views.tables.query import Page, TableQuery
from control.views.tables.rows import Row
from control.views.times import TimeError, parse_moment
from dashboard.components.grid import BLOCK_ROWS
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import displayed_snapshot
from dashboard.server.asker import GONE, AskerGoneError, in_turn, while_asked

AT_ONCE_MAX: Final = 2
"""Blocks or files of one table that are made at once; further ones wait. A filter over 400,000
rows takes a second of CPU and 150 MiB."""
LEVEL: Final = 1
"""Of gzip: a block is sent once. It becomes a tenth, in a millisecond."""
_GZIP: Final = "gzip"


def register(server: FastAPI, context: PageContext) -> None:
    """One route for all tables."""
    turns = TableTurns()

    @server.get("/rows/{kind}", include_in_schema=False)
    async def answer(kind: str, request: Request) -> Response:
        if kind not in LISTS:
            return no_such_table(kind)
        return await turns.answer(kind, request, lambda: _block(context, kind, request))


class TableTurns:
    """Makes answers from a table, a bounded number at once; further ones wait."""

    def __init__(self) -> None:
        self._turns = {kind: asyncio.Semaphore(AT_ONCE_MAX) for kind in LISTS}

    async def answer(self, kind: str, request: Request, make: Callable[[], Response]) -> Response:
        """The answer that ``make`` gives in a thread, unless its asker goes before."""
        try:
            return await while_asked(request, in_turn(self._turns[kind], make))
        except AskerGoneError:
            return Response(status_code=GONE)


def _block(context: PageContext, kind: str, request: Request) -> Response:
    given = request.query_params
    try:
        query = query_of(given)
    except ValueError as error:
        return PlainTextResponse(f"400: from and to are row numbers: {error}\n", 400)
    if refusal := no_such_moment(context, given):
        return refusal
    context.chosen.prefetch.asked()
    snapshot = displayed_snapshot(context, {"at": given.get("at", "")})
    body = json.dumps(
        answer_of(list_page(snapshot, kind, query, given.get("scope")), snapshot.why_empty),
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()
    headers = {"cache-control": "no-store"}
    if _GZIP in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, LEVEL)
        headers["content-encoding"] = _GZIP
    return Response(body, media_type="application/json", headers=headers)


def no_such_moment(context: PageContext, given: Mapping[str, str]) -> Response | None:
    """The answer to a question about a time that is none; None: it is one, or none is asked for."""
    try:
        if at := given.get("at", ""):
            parse_moment(at, now_ms=context.now_ms())
    except TimeError as error:
        return PlainTextResponse(f"400: {error}\n", 400)
    return None


def no_such_table(name: str) -> Response:
    """The answer to a question for a table that is not there."""
    return PlainTextResponse(f"404: no table {name!r}; there are {', '.join(LISTS)}\n", 404)


def query_of(given: Mapping[str, str]) -> TableQuery:
    """The grid's request as the views understand it.

    Raises:
        ValueError: ``from`` or ``to`` is no number, or not in order.
    """
    start = int(given.get("from") or 0)
    end = int(given.get("to") or start + BLOCK_ROWS)
    if not 0 <= start <= end:
        raise ValueError(f"{start} to {end}")
    return TableQuery(
        filter=given.get("q", ""),
        sort=given.get("sort", ""),
        offset=start,
        limit=max(end - start, 1),
        hides_internal=hides_internal(given),
    )


def hides_internal(given: Mapping[str, str]) -> bool:
    """Whether an address leaves out internal topics and groups."""
    return given.get("internal") == "no"


def answer_of(page: Page, why_empty: str = "") -> dict[str, Any]:
    """Rows as the grid takes them, how many there are, and the words beside the filter."""
    problem = why_empty or page.problem
    return {
        "rows": [row_of(row, page.columns) for row in page.rows],
        "count": page.matching,
        "words": problem or count_words(page),
        "is_problem": bool(problem),
    }


def row_of(row: Row, columns: tuple[Column, ...]) -> dict[str, str]:
    """Texts and tones of one row, with its identity and where Enter leads."""
    texts = {"key": row.key, "path": row.path}
    for column in columns:
        cell = row.cell(column.id)
        texts[column.id] = cell.shaped(is_number=column.is_number)
        if cell.tone:
            texts[f"{column.id}__tone"] = str(cell.tone)
    return texts


def count_words(page: Page) -> str:
    """``12 of 1,234 rows``."""
    if page.matching == page.total:
        return counted(page.total, "row")
    return f"{page.matching:,} of {counted(page.total, 'row')}"
