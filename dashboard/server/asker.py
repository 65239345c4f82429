"""Work for one request ends with its asker: a closed tab, or a download that is broken off."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

GONE: Final = 499
"""Status of an answer that nobody waits for."""
_Answer = TypeVar("_Answer")


class AskerGoneError(Exception):
    """The connection was closed before the answer was there."""


async def while_asked(request: Request, work: Coroutine[Any, Any, _Answer]) -> _Answer:
    """The answer, unless the asker goes before; the work is cancelled then.

    :raises AskerGoneError: it has gone.
    """
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise AskerGoneError
        return task.result()
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def in_turn(turn: asyncio.Semaphore, work: Callable[[], _Answer]) -> _Answer:
    """Do the work in a thread once it is its turn, which lasts as long as the thread works: also
    where the asker has gone."""
    async with turn:
        working = asyncio.ensure_future(run_in_threadpool(work))
        try:
            return await asyncio.shield(working)
        finally:
            await asyncio.wait({working})


async def _gone(request: Request) -> None:
    kind = ""
    while kind != "http.disconnect":
        await asyncio.sleep(0)  # a body without end takes no turn of others
        kind = (await request.receive())["type"]
