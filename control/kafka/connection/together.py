"""Questions that are asked at the same time, and end together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """A group for tasks. The first error ends the others before it comes out, as it is: what went
    on alone would fail unheard, and be told as a traceback when the program ends."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
