"""Reassignments for programs: what `partiscope moves --json` tells, and news of one."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Final

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from control.kafka.errors import KafkaPortError
from control.move.state import OperationState, Phase
from control.operations.errors import ElsewhereError, InvalidInputError, OperationError
from dashboard.context import PageContext
from dashboard.server.api.errors import ApiError
from dashboard.server.api.tables import ClusterChoice

PATH: Final = "/api/v1/moves"
STREAMS_MAX: Final = 20
LOOK_S: Final = 1.0
"""How often a stream asks whether its token still holds."""
SILENCE_LOOKS_MAX: Final = 15
"""A comment is sent then, so that proxies keep the connection."""
ClusterQuery = Annotated[ClusterChoice, Query()]


class MovesDocument(BaseModel):
    """All reassignments that are known, the newest first."""

    moves: list[dict[str, Any]] = Field(description="As `partiscope moves --json` tells them.")


def register(api: FastAPI, context: PageContext) -> None:
    """All, one, and the stream of one."""
    streams: set[object] = set()

    async def every(asked: ClusterQuery) -> Response:
        states = await context.actions.session.moves.list()
        return JSONResponse({"moves": [state.document() for state in states]})

    async def one(move: str, asked: ClusterQuery) -> Response:
        return JSONResponse((await _state(context, move)).document())

    async def events(move: str, request: Request, asked: ClusterQuery) -> Response:
        if len(streams) >= STREAMS_MAX:
            raise ApiError(
                429, f"{move} is not watched", why=f"{STREAMS_MAX} streams are open",
                next_step="end one of them",
            )  # fmt: skip
        state = await _state(context, move)
        news = context.actions.session.moves.watch(state.operation_id)
        pieces = _counted(_events(state, news, request.state.is_live), streams)
        return StreamingResponse(pieces, media_type="text/event-stream")

    shown: dict[str, Any] = {"tags": ["Reassignments"]}
    api.add_api_route(
        PATH, every, operation_id="moves", summary="Every reassignment, the newest first", **shown,
        responses={200: {"model": MovesDocument, "description": "Running and past."}},
    )  # fmt: skip
    api.add_api_route(
        f"{PATH}/{{move}}", one, operation_id="move", summary="One reassignment", **shown,
        responses={200: {"model": dict[str, Any], "description": "As `moves show --json`."}},
    )  # fmt: skip
    api.add_api_route(
        f"{PATH}/{{move}}/events", events, operation_id="move_events", **shown,
        summary="Server-sent events: `move` at each change, `end` with its outcome",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}},
                         "description": "Until it has ended."}},
    )  # fmt: skip


async def _state(context: PageContext, move: str) -> OperationState:
    """:raises ApiError: there is none of this id on the cluster."""
    try:
        return await context.actions.session.moves.get(move)
    except (InvalidInputError, ElsewhereError) as error:
        raise ApiError(
            404, f"there is no reassignment {move!r}", why=error.reason,
            next_step=f"GET {PATH} lists all",
        ) from error  # fmt: skip


async def _counted(pieces: AsyncIterator[str], streams: set[object]) -> AsyncIterator[str]:
    streams.add(mark := object())
    try:
        async for piece in pieces:
            yield piece
    finally:
        streams.discard(mark)


async def _events(
    state: OperationState, news: AsyncIterator[OperationState], is_live: Callable[[], bool]
) -> AsyncIterator[str]:
    """News of one, from its begin to its end, or until its asker's token ends."""
    if state.phase is Phase.SUBMITTED:  # nothing has come of it yet
        yield _move_event(state)
    coming: asyncio.Future[OperationState] | None = None
    silent = 0
    try:
        while is_live():
            coming = coming or asyncio.ensure_future(anext(news))
            await asyncio.wait({coming}, timeout=LOOK_S)
            if not coming.done():
                silent += 1
                if silent % SILENCE_LOOKS_MAX == 0:
                    yield ": nothing new\n\n"
                continue
            state, coming, silent = coming.result(), None, 0
            yield _move_event(state)
            if state.is_finished:
                yield f"event: end\ndata: {json.dumps(str(state.outcome))}\n\n"
                return
    except (KafkaPortError, OperationError, StopAsyncIteration) as error:
        yield f"event: lost\ndata: {json.dumps(str(error))}\n\n"
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


def _move_event(state: OperationState) -> str:
    return f"event: move\ndata: {json.dumps(state.document())}\n\n"
