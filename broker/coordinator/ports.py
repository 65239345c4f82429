"""Protocols of the replicas that the coordinator writes to, so that it can be driven without."""

from typing import Any, Protocol


class LogPort(Protocol):
    """The log of one partition of __consumer_offsets."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def read_bytes(
        self, offset: int, *, max_bytes: int, max_offset: int, min_one_batch: bool = True
    ) -> bytes:
        """Whole batches from the one that holds `offset`, none at or past `max_offset`."""
        ...


class AppendPort(Protocol):
    """Outcome of an append: `error` is None when all in-sync replicas have it."""

    @property
    def error(self) -> Exception | None: ...

    @property
    def base_offset(self) -> int: ...


class ReplicaPort(Protocol):
    """The replica manager, as far as the coordinator is concerned."""

    def partition(self, topic: str, partition: int) -> Any:
        """The local replica, or None."""
        ...

    async def append_and_wait(
        self, topic: str, partition: int, records: bytes, *, acks: int = -1, timeout_ms: int = 5000
    ) -> AppendPort:
        """Append one batch as leader and wait for the acknowledgements."""
        ...
