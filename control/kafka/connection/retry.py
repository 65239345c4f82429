"""Errors that pass by themselves: a moving controller, an election, a leader that does not know its
high watermark yet, a loading coordinator; and who is asked when only the controller answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kio.schema.errors import ErrorCode

from control.kafka.connection import apis
from control.kafka.connection.wire import KafkaWire
from control.kafka.errors import RefusedError, UnreachableError

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
        ErrorCode.offset_not_available,
        ErrorCode.replica_not_available,
        ErrorCode.kafka_storage_error,
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
        await _back_off(attempt)
    return await call()


async def ask_controller(
    wire: KafkaWire,
    call: Callable[[int | None], Awaitable[Result]],
    *,
    is_idempotent: bool = True,
) -> Result:
    """Call with the broker to ask, again while the refusal passes, as `retry_passing` does.

    Any broker (null) passes a request on to a KRaft controller. With ZooKeeper one of the brokers
    is the controller and the others refuse: after the first refusal the one that new metadata names
    is asked, now and later, until it is another.

    :raises RefusedError: another kind, or it did not pass.
    :raises UnreachableError: nobody answers; or the controller does not, or not in time, and the
        request may have been carried out (not `is_idempotent`).
    """
    for attempt in range(ATTEMPTS_MAX - 1):
        asked = wire.controller_id
        try:
            return await call(asked)
        except RefusedError as error:
            if error.code not in PASSING_CODES:
                raise
            if error.code is ErrorCode.request_timed_out and not is_idempotent:
                raise _perhaps_done(error) from error
            is_another = error.code is ErrorCode.not_controller
        except UnreachableError:
            wire.controller_id = None
            if asked is None or not is_idempotent:
                raise
            is_another = True
        if is_another:
            wire.controller_id = await _find_controller(wire)
        if not is_another or wire.controller_id in (None, asked):
            await _back_off(attempt)
    return await call(wire.controller_id)


def _perhaps_done(error: RefusedError) -> UnreachableError:
    return UnreachableError(
        f"{error.what} was not done in time, and may be done yet",
        reason=error.reason,
        next_step="look whether it was done before you ask for it again",
    )


async def _find_controller(wire: KafkaWire) -> int | None:
    """As any broker tells now; null while there is none."""
    message = (await wire.send(apis.METADATA, {"topics": ()})).message
    wire.set_addresses({b.node_id: (b.host, b.port) for b in message.brokers})
    return None if message.controller_id < 0 else int(message.controller_id)


async def _back_off(attempt: int) -> None:
    await asyncio.sleep(min(BACKOFF_S * 2**attempt, BACKOFF_S_MAX))
