"""Requests about thousands of things: others are served in between, threads code the answers."""

import asyncio
import time
from typing import Any, Final

from broker.protocol import codec

SLICE_S: Final = 0.005
"""So long a request is worked on at a stretch."""
LARGE_ENTRIES: Final = 500
"""An answer with more entries is built and encoded in a thread: some 4 µs for each."""


class Slices:
    """Work on one request, slice by slice."""

    def __init__(self) -> None:
        self._since_s = time.perf_counter()

    async def pause(self) -> None:
        """Let others go on if it is their turn."""
        if time.perf_counter() - self._since_s > SLICE_S:
            await asyncio.sleep(0)
            self._since_s = time.perf_counter()


class LargeAnswer:
    """The fields of a response that is built where it is encoded; `entries` is how many it has."""

    __slots__ = ("entries", "fields")

    def __init__(self, entries: int, **fields: Any) -> None:
        self.entries = entries
        self.fields = fields

    def build(self, api_key: int, version: int) -> Any:
        """The response as kio's entity."""
        return codec.build_response(api_key, version, **self.fields)

    @property
    def is_large(self) -> bool:
        """Whether building it would hold the loop."""
        return self.entries > LARGE_ENTRIES
