"""Questions asked at the same time end together, also within a time-out."""

import asyncio
from contextlib import suppress

import pytest

from control.kafka.connection.together import together


async def fails(reason: str) -> None:
    await asyncio.sleep(0)
    raise ValueError(reason)


async def test_the_first_error_ends_the_others_and_comes_out_as_it_is() -> None:
    others: list[asyncio.Task[bool]] = []

    async def asks() -> None:
        async with together() as asked:
            others.append(asked.create_task(asyncio.Event().wait()))
            asked.create_task(fails("first"))

    with pytest.raises(ValueError, match="first"):
        await asks()
    assert others[0].cancelled()


async def test_a_cancelled_question_ends_all_that_it_asks() -> None:
    async def asks() -> None:
        async with together() as asked:
            others.append(asked.create_task(asyncio.Event().wait()))

    others: list[asyncio.Task[bool]] = []
    asking = asyncio.create_task(asks())
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert others[0].cancelled()


async def test_a_time_out_around_a_failure_is_still_a_time_out() -> None:
    async def fails_and_waits() -> None:
        async with asyncio.timeout(0.01):
            with suppress(ValueError):
                async with together() as asked:
                    asked.create_task(fails("again"))
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await fails_and_waits()
