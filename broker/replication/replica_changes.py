"""Changes of replicas that are here: one event, like the fencing of a broker, may change thousands.

Some milliseconds' worth are made at a stretch; votes, heartbeats and fetches are answered in
between. Until its turn comes a replica is as it was, as if the metadata had reached it later.
"""

from collections.abc import Callable, Iterable
from typing import Final

from broker.background import Slices, Tasks, attempt, log_failure

AT_ONCE_MAX: Final = 64
"""So few are changed within the call."""

Key = tuple[str, int]
"""Topic and partition."""


class ReplicaChanges:
    """Each is changed once, in order, to what holds when its turn comes."""

    def __init__(self, owner: str, change: Callable[[Key], None]) -> None:
        """`change` brings a replica in line with the newest image, or does nothing."""
        self._owner = owner
        self._change = change
        self._waiting: dict[Key, None] = {}
        self._tasks = Tasks(owner, log_failure)
        self._is_closed = False

    def add(self, keys: Iterable[Key]) -> None:
        """A few are changed now, also if they wait already."""
        changed = dict.fromkeys(keys)
        if len(changed) > AT_ONCE_MAX:
            if not self._is_closed:
                self._waiting |= changed
            if self._waiting and not self._tasks:
                self._tasks.keep(self._run)
            return
        for key in changed:
            self._waiting.pop(key, None)
            attempt(self._owner, self._change, key)

    async def close(self) -> None:
        """Those that wait stay as they are."""
        self._is_closed = True
        self._waiting.clear()
        await self._tasks.wait(None)

    async def _run(self) -> None:
        slices = Slices()
        while self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            attempt(self._owner, self._change, key)
            await slices.pause()
