"""Waiters: for records to be committed, for the answer to a request."""

import asyncio
from collections import deque

from broker.raft.errors import NotLeaderError
from broker.raft.messages import Response


class CommitWaiters:
    """Futures by offset; appends come in order, so their waiters stand in order, too."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def add(self, offset: int) -> asyncio.Future[None]:
        """A future that is done when the record at `offset` is committed and replayed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        return future

    def release(self, committed_offset: int) -> None:
        """Everything below is committed."""
        while self._waiting and self._waiting[0][0] < committed_offset:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def fail(self, leader_id: int | None) -> None:
        """This node no longer leads: nobody here will learn what becomes of the records."""
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(NotLeaderError(leader_id))


class Answers:
    """Requests of other voters that the core has not answered yet, by token."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._last_token = 0

    def expect(self) -> tuple[int, asyncio.Future[Response]]:
        """A token, and the future of the answer; forget it once it is not waited for any more."""
        self._last_token += 1
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_token] = future
        return self._last_token, future

    def forget(self, token: int) -> None:
        """Nobody waits for it."""
        self._waiting.pop(token, None)

    def give(self, token: int, response: Response) -> None:
        """The answer, if it is still waited for."""
        future = self._waiting.get(token)
        if future is not None and not future.done():
            future.set_result(response)

    def fail(self) -> None:
        """There will be no answers: this voter has fallen silent."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(NotLeaderError(None))

    def cancel(self) -> None:
        """Ends all waiters."""
        for future in self._waiting.values():
            future.cancel()
