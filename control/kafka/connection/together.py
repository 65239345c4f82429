"""Questions that are asked at the same time, and end together."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")


class Asked:
    """Tasks that end with the first error of one of them."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[Any]] = []

    def create_task(self, asking: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(asking)
        self.tasks.append(task)
        return task


@asynccontextmanager
async def together() -> AsyncIterator[Asked]:
    """Begins tasks, and ends when all have ended. The first error ends the others before it comes
    out, as it is: what went on alone would fail unheard, and be told as a traceback when the
    program ends.

    ``asyncio.TaskGroup`` of Python 3.11 leaves its parent marked as cancelled when a task fails
    while it waits for them; a time-out around it then ends in CancelledError.
    """
    asked = Asked()
    try:
        yield asked
        await asyncio.gather(*asked.tasks)
    finally:
        for task in asked.tasks:
            task.cancel()
        await asyncio.gather(*asked.tasks, return_exceptions=True)
