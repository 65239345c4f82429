"""Questions asked at the same time end together, also within a time-out."""

import asyncio

import pytest

from control.kafka.connection.together import together


async def fails(reason: str) -> None:
    await asyncio.sleep(0)
    raise ValueError(reason)


async def test_the_first_error_ends_the_others_and_comes_out_as_it_is() -> None:
    with pytest.raises(ValueError, match="first"):
        async with together() as asked:
            other = asked.create_task(asyncio.Event().wait())
            asked.create_task(fails("first"))
    assert other.cancelled()


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
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            for _ in range(3):
                with pytest.raises(ValueError, match="again"):
                    async with together() as asked:
                        asked.create_task(fails("again"))
            await asyncio.Event().wait()
