"""Work that is too much for one turn of the event loop, done slice by slice."""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

from broker.clock import Clock

SLICE_MS: Final = 20
SLICE_ITEMS: Final = 32
"""A slice ends when it has had as much time and as many items: votes, heartbeats and fetches then
have their turn."""

Item = TypeVar("Item", bound=Hashable)


class Slices(Generic[Item]):
    """Does each item once, in order; items that wait may be added again without effect.

    The first slice is done within `add`: a little work is done when it returns.
    """

    def __init__(self, clock: Clock, do: Callable[[Item], None]) -> None:
        self._clock = clock
        self._do = do
        self._waiting: dict[Item, None] = {}
        self._turn: asyncio.Handle | None = None

    def add(self, items: Iterable[Item]) -> None:
        """Behind those that wait already."""
        self._waiting |= dict.fromkeys(items)
        if self._turn is None:
            self._take_turn()

    def close(self) -> None:
        """Nothing that waits will be done."""
        self._waiting.clear()
        if self._turn is not None:
            self._turn.cancel()

    def _take_turn(self) -> None:
        self._turn = None
        until_ms = self._clock.monotonic_ms() + SLICE_MS
        try:
            for done, item in enumerate(list(self._waiting)):
                if done >= SLICE_ITEMS and self._clock.monotonic_ms() >= until_ms:
                    break
                del self._waiting[item]
                self._do(item)
        finally:
            if self._waiting:
                self._turn = asyncio.get_running_loop().call_soon(self._take_turn)
