"""Questions asked at the same time: none goes on alone once one has failed."""

import asyncio
from typing import Any

import pytest

from control.kafka.connection.together import together


async def _fails(after_s: float, *, on_cancel: bool = False) -> None:
    try:
        await asyncio.sleep(after_s)
    except asyncio.CancelledError:
        if not on_cancel:
            raise
    raise ConnectionError(f"after {after_s:.0f} s")


async def _ask(unheard: list[dict[str, Any]]) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
    async with together() as group:
        group.create_task(_fails(0.0))
        group.create_task(_fails(60.0, on_cancel=True))
        group.create_task(_fails(60.0))


def test_the_first_error_comes_out_as_it_is_and_no_other_is_told_at_the_end() -> None:
    unheard: list[dict[str, Any]] = []
    with pytest.raises(ConnectionError, match="after 0"):
        asyncio.run(_ask(unheard))
    assert unheard == []
