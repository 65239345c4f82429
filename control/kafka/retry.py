"""Errors that pass by themselves: a moving controller, an election, a loading coordinator."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kio.schema.errors import ErrorCode

from control.kafka.errors import RefusedError

PASSING_CODES: Final = frozenset(
    {
        ErrorCode.not_controller,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.request_timed_out,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.broker_not_available,
    }
)
ATTEMPTS_MAX: Final = 8
BACKOFF_S: Final = 0.1
BACKOFF_S_MAX: Final = 2.0

Result = TypeVar("Result")


async def retry_passing(call: Callable[[], Awaitable[Result]]) -> Result:
    """Call again while the refusal is of the passing kind; about 8 s in all.

    :raises RefusedError: another kind, or it did not pass.
    """
    for attempt in range(ATTEMPTS_MAX - 1):
        try:
            return await call()
        except RefusedError as error:
            if error.code not in PASSING_CODES:
                raise
        await asyncio.sleep(min(BACKOFF_S * 2**attempt, BACKOFF_S_MAX))
    return await call()
