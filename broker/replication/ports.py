"""Needs of replication: metadata, configs, the controller, other nodes.

The images of broker.controller fit the read-only protocols here; this package does not import
them, because the controller's room lies above it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID


class PartitionView(Protocol):
    """A partition in the metadata image."""

    @property
    def topic_id(self) -> UUID: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...


class TopicView(Protocol):
    """A topic in the metadata image."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> Mapping[int, PartitionView]: ...


class BrokerView(Protocol):
    """A broker in the metadata image."""

    @property
    def epoch(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def is_active(self) -> bool: ...


class ImageView(Protocol):
    """The metadata image."""

    @property
    def topics(self) -> Mapping[str, TopicView]: ...
    @property
    def topics_by_id(self) -> Mapping[UUID, TopicView]: ...
    @property
    def brokers(self) -> Mapping[int, BrokerView]: ...


class ConfigResourceView(Protocol):
    """The key of a config: type 2 is a topic, 4 a broker."""

    @property
    def type(self) -> int: ...
    @property
    def name(self) -> str: ...


class DeltaView(Protocol):
    """Changes of a commit."""

    @property
    def topics_deleted(self) -> Sequence[TopicView]: ...
    @property
    def partitions_changed(self) -> frozenset[tuple[str, int]]: ...
    @property
    def brokers_changed(self) -> frozenset[int]: ...
    @property
    def configs_changed(self) -> frozenset[Any]: ...


class MetadataPort(Protocol):
    """node.metadata."""

    @property
    def image(self) -> Any:
        """The latest ImageView."""
        ...

    @property
    def broker_epoch(self) -> int: ...

    def subscribe(self, callback: Callable[[Any, Any, Any], None]) -> None:
        """Call (old image, new image, delta) after each commit."""
        ...


class ConfigPort(Protocol):
    """Effective configs as of the latest image, with broker-level values and defaults."""

    def topic(self, topic: str) -> Mapping[str, str]:
        """Topic configs by their topic-level names (`min.insync.replicas`)."""
        ...

    def broker(self) -> Mapping[str, str]:
        """Dynamic configs of this node (`leader.replication.throttled.rate`)."""
        ...


class AlterPartitionPort(Protocol):
    """The way to the active controller (node.controller)."""

    async def submit(self, api_key: int, api_version: int, message: Any, *, lane: str) -> Any:
        """Request message -> response message.

        :raises OSError: no controller could be reached; whether it was applied is unknown.
        """
        ...


class LeaderChannel(Protocol):
    """One connection to another node, made when needed."""

    async def submit(
        self,
        build: Callable[[int], Sequence[bytes | memoryview]],
        on_response: Callable[[Any], None],
        *,
        timeout_s: float = ...,
    ) -> None:
        """Send what `build(correlation_id)` returns; `on_response` gets a memoryview that is
        valid during the call, or an OSError.

        :raises OSError: there is no connection; `on_response` will not be called.
        """
        ...

    async def close(self) -> None: ...


ConnectToLeader = Callable[[str, int], LeaderChannel]
"""(host, port) -> a channel of its own."""
