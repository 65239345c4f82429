"""Needs of replication: configs, the controller, other nodes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from broker.metadata.records import BrokerEndpoint


class ConfigPort(Protocol):
    """Effective configs as of the latest image, with broker-level values and defaults."""

    def topic(self, topic: str) -> Mapping[str, str]:
        """Topic configs by their topic-level names (`min.insync.replicas`)."""

    def broker(self) -> Mapping[str, str]:
        """Dynamic configs of this node (`leader.replication.throttled.rate`)."""


class AlterPartitionPort(Protocol):
    """The way to the active controller (node.controller)."""

    async def submit(self, api_key: int, api_version: int, message: Any, *, lane: str) -> Any:
        """Request message -> response message.

        :raises OSError: no controller could be reached; whether it was applied is unknown.
        """


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

    async def close(self) -> None: ...


ConnectToLeader = Callable[[BrokerEndpoint], LeaderChannel]
"""(host, port) -> a channel of its own."""
