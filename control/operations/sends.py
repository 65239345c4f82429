"""Running sends of a session: they go on while the views of a face come and go.

A topic has one send at a time, so that whoever opens its produce view finds it, sees how far it
is, and stops it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final, Protocol

from control.kafka.errors import KafkaPortError
from control.messages.produce_progress import ProduceProgress
from control.messages.produce_session import PROGRESS_EVERY_S
from control.operations.catalogue.operation import Done, Operation
from control.operations.catalogue.topics.produce import Produce
from control.operations.errors import OperationError, SendRunsError
from control.operations.previews import Previewed

KEPT_MAX: Final = 50
"""The result of the oldest that has ended is forgotten first; more are not begun."""
_CLOSE_WAIT_S: Final = 3.0


class _Session(Protocol):
    async def preview(self, asked: Operation) -> Previewed:
        """The changes that an operation would make."""

    def require(self, command: Operation, *, typed: str = "") -> None:
        """Refuse what may not be done, or was not confirmed."""

    async def perform(self, previewed: Previewed, *, typed: str = "") -> Done:
        """Do what was previewed."""


class Send:
    """One produce operation that runs, or has ended."""

    def __init__(self, number: int, asked: Produce) -> None:
        self.number = number
        self.asked = asked
        self.is_running = True
        self.error: KafkaPortError | OperationError | None = None
        """Why it ended before all was sent."""
        self.ended_ms = 0

    @property
    def topic(self) -> str:
        """The topic that it sends to."""
        return self.asked.job.topic

    @property
    def progress(self) -> ProduceProgress | None:
        """None: it has not begun to send."""
        return self.asked.run.progress

    def stop(self) -> None:
        """Send nothing more; what is under way is awaited."""
        self.asked.run.stop()

    async def progresses(self) -> AsyncIterator[ProduceProgress]:
        """Its progress until it has ended, the last one included."""
        while True:
            is_last, progress = not self.is_running, self.progress
            if progress is not None:
                yield progress
            if is_last:
                return
            await asyncio.sleep(PROGRESS_EVERY_S)


class Sends:
    """The sends of one session, by topic."""

    def __init__(self, session: _Session) -> None:
        self._session = session
        self._by_topic: dict[str, Send] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0

    async def begin(self, asked: Produce, *, typed: str = "") -> Send:
        """Send in the background from now on.

        :raises SendRunsError: the topic is being sent to, or too many others are.
        :raises OperationError: it may not be done, or has a wrong value.
        :raises KafkaPortError: the cluster does not answer.
        """
        self._require_room(asked.job.topic)
        previewed = await self._session.preview(asked)
        self._session.require(asked, typed=typed)
        self._require_room(asked.job.topic)
        self._count += 1
        send = Send(self._count, asked)
        self._by_topic.pop(send.topic, None)
        self._by_topic[send.topic] = send
        task = asyncio.create_task(self._perform(send, previewed, typed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return send

    def of(self, topic: str) -> Send | None:
        """The newest send to a topic; None: there is none."""
        return self._by_topic.get(topic)

    def running(self) -> tuple[Send, ...]:
        """All that run, the oldest first."""
        return tuple(send for send in self._by_topic.values() if send.is_running)

    async def close(self) -> None:
        """Stop all, and wait a moment for the answers of what is under way."""
        for send in self.running():
            send.stop()
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=_CLOSE_WAIT_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _perform(self, send: Send, previewed: Previewed, typed: str) -> None:
        try:
            await self._session.perform(previewed, typed=typed)
        except (KafkaPortError, OperationError) as error:
            send.error = error
        finally:
            send.stop()
            send.is_running, send.ended_ms = False, time.time_ns() // 1_000_000

    def _require_room(self, topic: str) -> None:
        send = self.of(topic)
        if send is not None and send.is_running:
            sent = 0 if send.progress is None else send.progress.sent
            raise SendRunsError(topic, f"{sent:,} records are sent so far")
        ended = [name for name, each in self._by_topic.items() if not each.is_running]
        for name in ended[: max(len(self._by_topic) - KEPT_MAX + 1, 0)]:
            del self._by_topic[name]
        if len(self._by_topic) >= KEPT_MAX:
            raise SendRunsError(topic, f"{KEPT_MAX} other topics are being sent to")
