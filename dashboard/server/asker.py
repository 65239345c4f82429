"""Work for one request ends with its asker: a closed tab, or a download that is broken off."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from fastapi import Request

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


async def _gone(request: Request) -> None:
    kind = ""
    while kind != "http.disconnect":
        await asyncio.sleep(0)  # a body without end takes no turn of others
        kind = (await request.receive())["type"]
