"""Tables of the API: ``/api/v1/tables/groups?filter=lag>0&sort=-lag&columns=group,lag&limit=50``.

Each table of the screens is a path, made from its declaration: its columns are the keys of rows.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, create_model

from control.views.alert_tables import ALERTS, SILENCES
from control.views.snapshots.snapshot import LISTS, OperatorSnapshot, list_page
from control.views.tables.column import Column, Table
from control.views.tables.export import is_figure, page_of_rows, page_values
from control.views.tables.findings import FINDINGS
from control.views.tables.journal import JOURNAL
from control.views.tables.moves import MOVES, move_row
from control.views.tables.query import LIMIT_MAX, Page, TableQuery
from control.views.tables.rows import Row
from control.views.times import TimeError, parse_moment
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import displayed_snapshot
from dashboard.server.api.errors import ApiError
from dashboard.server.asker import GONE, AskerGoneError, while_asked

PATH: Final = "/api/v1/tables"
AT_ONCE_MAX: Final = 2
"""Answers that are made at once; further ones wait."""
_BASE: Final = ConfigDict(extra="forbid")


class ClusterChoice(BaseModel):
    """The parameter of every request."""

    model_config = _BASE
    cluster: str = Field("", description="Name of a watched cluster; empty: the usual one.")


class TableRequest(ClusterChoice):
    """Parameters of every table."""

    filter: str = Field("", description="As on the screens: lag>10k broker:102 -status:ok.")
    sort: str = Field("", description="A column; -lag: the largest first.")
    columns: str = Field("", description="Columns with commas between; empty: all.")
    offset: int = Field(0, ge=0, description="Number of the first row.")
    limit: int = Field(100, ge=1, le=LIMIT_MAX, description="Rows at most.")

    @property
    def query(self) -> TableQuery:
        """As views understand it."""
        return TableQuery(
            filter=self.filter,
            sort=self.sort,
            columns=self.columns,
            offset=self.offset,
            limit=self.limit,
        )


class MomentRequest(TableRequest):
    """Parameters of a table that history has as well."""

    at: str = Field("", description="A moment: 15m ago, or 2026-08-01T12:00; empty: now.")


class ScopedRequest(MomentRequest):
    """Parameters of a table of parts."""

    scope: str | None = Field(None, description="Only the rows of this topic or group.")


Made = Callable[[PageContext, Any], Awaitable[tuple[Page, int | None]]]
"""The page of a table, and when its newest figure was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTable:
    """A table, how it is asked for, and who makes its pages."""

    kind: Table
    request: type[TableRequest]
    make: Made
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE_MAX))

    @property
    def row(self) -> type[BaseModel]:
        """Model of its rows."""
        fields: dict[str, Any] = {it.id: (_type(it), _described(it)) for it in self.kind.columns}
        name = f"Row of {self.kind.name}"
        return create_model(name, __config__=ConfigDict(title=name), **fields)

    @property
    def answer(self) -> type[BaseModel]:
        """Model of its answers."""
        fields: dict[str, Any] = {
            self.kind.name: (list[self.row], Field(description=self.kind.about)),  # type: ignore[name-defined]
            "total": (int, Field(description="Rows of the whole table.")),
            "matching": (int, Field(description="Rows that pass the filter.")),
            "offset": (int, Field(description="Number of the first row.")),
            "sampled_ms": (
                int | None,
                Field(description="When the newest figure was read; null: it has none."),
            ),
        }
        return create_model(f"Page of {self.kind.name}", **fields)


def _type(column: Column) -> Any:
    return (float if is_figure(column) else str) | None


def _described(column: Column) -> Any:
    unit = "milliseconds since 1970" if column.unit.name == "time" else column.unit.name
    return Field(None, description=f"{column.help or column.title} ({unit}).")


def _list_maker(name: str) -> Made:
    async def make(context: PageContext, asked: MomentRequest) -> tuple[Page, int | None]:
        def made() -> tuple[Page, int | None]:
            snapshot = _snapshot(context, asked)
            scope = asked.scope if isinstance(asked, ScopedRequest) else None
            return list_page(snapshot, name, asked.query, scope), snapshot.cluster.sampled_ms

        return await asyncio.to_thread(made)

    return make


async def _findings(context: PageContext, asked: MomentRequest) -> tuple[Page, int | None]:
    snapshot = await asyncio.to_thread(_snapshot, context, asked)
    page = page_of_rows(FINDINGS, snapshot.finding_rows, asked.query)
    return page, snapshot.cluster.sampled_ms


def _row_maker(kind: Table, rows: Callable[[PageContext], Awaitable[list[Row]]]) -> Made:
    async def make(context: PageContext, asked: TableRequest) -> tuple[Page, int | None]:
        return page_of_rows(kind, await rows(context), asked.query), None

    return make


async def _moves(context: PageContext) -> list[Row]:
    now_ms = context.now_ms()
    return [move_row(it, now_ms=now_ms) for it in await context.actions.session.moves.list()]


async def _journal(context: PageContext) -> list[Row]:
    return [JOURNAL.row(line) for line in await context.actions.session.journal.lines()]


async def _alerts(context: PageContext) -> list[Row]:
    return list(context.snapshot.alerts.alert_rows(context.now_ms()))


async def _silences(context: PageContext) -> list[Row]:
    return list(context.snapshot.alerts.silence_rows(context.now_ms()))


def tables() -> tuple[ApiTable, ...]:
    """Every table of the API."""
    large = (
        ApiTable(
            kind=it.kind,
            request=ScopedRequest if it.scope else MomentRequest,
            make=_list_maker(name),
        )
        for name, it in LISTS.items()
    )
    small = (
        (MOVES, _moves),
        (JOURNAL, _journal),
        (ALERTS, _alerts),
        (SILENCES, _silences),
    )
    return (
        *large,
        ApiTable(kind=FINDINGS, request=MomentRequest, make=_findings),
        *(
            ApiTable(kind=kind, request=TableRequest, make=_row_maker(kind, rows))
            for kind, rows in small
        ),
    )


def register(api: FastAPI, context: PageContext) -> None:
    """A path for each table."""
    for table in tables():
        _register(api, context, table)


def _register(api: FastAPI, context: PageContext, table: ApiTable) -> None:
    async def answer(request: Request, asked: Any) -> Response:
        try:
            return await while_asked(request, _answered(context, table, asked))
        except AskerGoneError:
            return Response(status_code=GONE)

    answer.__annotations__["asked"] = Annotated[table.request, Query()]
    api.add_api_route(
        f"{PATH}/{table.kind.name}",
        answer,
        operation_id=f"table_{table.kind.name}",
        summary=f"{table.kind.about}.",
        tags=["Tables"],
        response_class=Response,
        responses={200: {"model": table.answer, "description": "A page of rows."}},
    )


async def _answered(context: PageContext, table: ApiTable, asked: TableRequest) -> Response:
    async with table.turn:
        page, sampled_ms = await table.make(context, asked)
        if page.problem:
            raise ApiError(
                422, f"the table {table.kind.name} was not read", why=page.problem,
                next_step="correct filter, sort or columns",
            )  # fmt: skip
        rows = await asyncio.to_thread(page_values, page)
    document: Mapping[str, Any] = {
        table.kind.name: rows,
        "total": page.total,
        "matching": page.matching,
        "offset": page.offset,
        "sampled_ms": sampled_ms,
    }
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(body, media_type="application/json")


def _snapshot(context: PageContext, asked: MomentRequest) -> OperatorSnapshot:
    """:raises ApiError: there are no figures, or none of that moment."""
    try:
        if asked.at:
            parse_moment(asked.at, now_ms=context.now_ms())
    except TimeError as error:
        raise ApiError(
            422, "the table was not read", why=str(error), next_step="write another time",
            fields={"at": str(error)},
        ) from error  # fmt: skip
    snapshot = displayed_snapshot(context, {"at": asked.at})
    if snapshot.why_empty:
        raise ApiError(
            404, "nothing is known of that moment", why=snapshot.why_empty,
            next_step="ask for another, or leave `at` out",
        )  # fmt: skip
    if snapshot.is_empty:
        raise ApiError(
            503, "there are no figures yet",
            why=snapshot.unwatched or "the first ones take some seconds", next_step="ask again",
        )  # fmt: skip
    return snapshot
