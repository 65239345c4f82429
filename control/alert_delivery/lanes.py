"""Delivery to one receiver: one message after the other, with retries that no other waits for."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from control.alert_delivery.receivers.receiver import Receiver, shortened
from control.alerts.machine import Telling
from control.alerts.messages import Message

BACKOFF_MS_MIN: Final = 2_000
BACKOFF_MS_MAX: Final = 300_000
"""A receiver that takes nothing is tried again after 2 s, then 4 s, … at most 5 minutes."""
SEND_S_MAX: Final = 60.0
"""No receiver needs longer than its own time; a library that hangs counts as a failure."""

_log: Final = logging.getLogger(__name__)

Took = Callable[[Sequence[Telling]], Awaitable[None]]


class Lane:
    """The way to one receiver."""

    def __init__(self, receiver: Receiver, took: Took, now_ms: Callable[[], int]) -> None:
        """``took`` hears what it has taken."""
        self.failure = ""
        """Why it did not take the newest message; empty: it did."""
        self.failing_since_ms = 0
        self._receiver = receiver
        self._took = took
        self._now_ms = now_ms
        self._backoff_ms = 0
        self._tried_ms = 0
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="receiver")

    def is_free(self, now_ms: int) -> bool:
        """Whether something may be sent now."""
        is_busy = self._task is not None and not self._task.done()
        return not is_busy and not 0 <= now_ms - self._tried_ms < self._backoff_ms

    def is_idle(self, now_ms: int) -> None:
        """Nothing is due: the failure is over, since nothing is owed to this receiver."""
        if self.failure and self.is_free(now_ms):
            self.failure = ""

    def start(self, messages: Sequence[Message]) -> None:
        """Send these, one after the other, up to the first that is not taken."""
        self._task = asyncio.create_task(self._send(messages))

    def stop(self) -> None:
        """End; what is being sent may still be taken."""
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if not await self._is_taken(message):
                return
            await self._took(message.tellings)

    async def _is_taken(self, message: Message) -> bool:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SEND_S_MAX):
                await loop.run_in_executor(self._thread, self._receiver.send, message)
        except Exception as error:  # noqa: BLE001 (a fault of one receiver must not end the others)
            self._fail(message, error)
            return False
        if self.failure:
            _log.warning("%s takes alerts again", message.receiver)
        self.failure, self._backoff_ms = "", 0
        return True

    def _fail(self, message: Message, error: Exception) -> None:
        self._tried_ms = self._now_ms()
        self._backoff_ms = min(max(2 * self._backoff_ms, BACKOFF_MS_MIN), BACKOFF_MS_MAX)
        why = shortened(error) or f"no answer ({type(error).__name__})"
        if not self.failure:
            self.failing_since_ms = self._tried_ms
            _log.warning("%s does not take alerts, and is tried again: %s", message.receiver, why)
        self.failure = why
