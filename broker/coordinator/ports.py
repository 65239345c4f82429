"""Protocols of the coordinator's neighbours, so that it can be driven without them."""

from collections.abc import Callable, Mapping
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


class PartitionPort(Protocol):
    """A replica on this node."""

    @property
    def log(self) -> LogPort: ...

    @property
    def is_leader(self) -> bool: ...

    @property
    def leader_epoch(self) -> int: ...


class AppendPort(Protocol):
    """Outcome of an append: `error` is None when all in-sync replicas have it."""

    @property
    def error(self) -> Exception | None: ...

    @property
    def base_offset(self) -> int: ...


class ReplicaPort(Protocol):
    """The replica manager, as far as the coordinator is concerned."""

    def partition(self, topic: str, partition: int) -> Any:
        """The local replica (PartitionPort), or None."""
        ...

    async def append_and_wait(
        self, topic: str, partition: int, records: bytes, *, acks: int = -1, timeout_ms: int = 5000
    ) -> AppendPort:
        """Append one batch as leader and wait for the acknowledgements."""
        ...


class PartitionView(Protocol):
    """A partition in the cluster's metadata."""

    @property
    def leader(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...


class TopicView(Protocol):
    """A topic in the cluster's metadata."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Mapping[int, PartitionView]: ...


class ImageView(Protocol):
    """The cluster's metadata at one moment."""

    @property
    def topics(self) -> Mapping[str, TopicView]: ...


class MetadataPort(Protocol):
    """The replayed metadata of this node."""

    @property
    def image(self) -> Any:
        """The latest ImageView."""
        ...

    def subscribe(self, callback: Callable[[Any, Any, Any], None]) -> object:
        """Call (old image, new image, changes) in the loop after each replayed commit."""
        ...
