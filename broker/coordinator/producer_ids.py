"""Producer ids for idempotent producers, from blocks that the controller hands out (KIP-730)."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from broker.protocol import codec

ALLOCATE_PRODUCER_IDS: Final = 67
ALLOCATE_PRODUCER_IDS_VERSION: Final = 0


class ProducerIdsUnavailableError(Exception):
    """The controller gave no block; the client should try again."""


class ControllerPort(Protocol):
    """The way to the active controller (node.controller)."""

    async def submit(self, api_key: int, api_version: int, message: Any) -> Any:
        """Request message -> response message.

        :raises OSError: no controller answered.
        """


class ProducerIdAllocator:
    """Hands out each id once; a block is lost with the process, which is harmless."""

    def __init__(
        self, *, node_id: int, broker_epoch: Callable[[], int], controller: ControllerPort
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        """An id that nobody had before.

        :raises ProducerIdsUnavailableError: no block could be had from the controller.
        """
        async with self._lock:
            if self._next == self._end:
                await self._allocate()
            self._next += 1
            return self._next - 1

    async def _allocate(self) -> None:
        message = codec.build_request(
            ALLOCATE_PRODUCER_IDS,
            ALLOCATE_PRODUCER_IDS_VERSION,
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
        )
        try:
            block = await self._controller.submit(
                ALLOCATE_PRODUCER_IDS, ALLOCATE_PRODUCER_IDS_VERSION, message
            )
        except OSError as error:
            raise ProducerIdsUnavailableError(str(error)) from error
        if int(block.error_code) != 0:
            raise ProducerIdsUnavailableError(f"the controller refused: {block.error_code!r}")
        self._next = block.producer_id_start
        self._end = block.producer_id_start + block.producer_id_len
