"""Who waits for records to be committed."""

import asyncio
from collections import deque

from broker.quorum.errors import NotLeaderError


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
