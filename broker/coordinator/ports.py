"""Protocols of the replicas that the coordinator writes to, so that it can be driven without.

What the members do is told where they are implemented: PartitionLog, ReplicaManager.
"""

from typing import Any, Protocol

from broker.log.log_validator import AppendInfo


class LogPort(Protocol):
    """The log of one partition of __consumer_offsets."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    def read_bytes(
        self, offset: int, *, max_bytes: int, max_offset: int, min_one_batch: bool = True
    ) -> bytes: ...


class ReplicaPort(Protocol):
    """The replica manager, as far as the coordinator is concerned."""

    def partition(self, topic: str, partition: int) -> Any: ...
    async def append_and_wait(
        self, topic: str, partition: int, records: bytes, *, acks: int = -1, timeout_ms: int = 5000
    ) -> AppendInfo: ...
