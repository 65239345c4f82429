"""Transactions of one node, put together: coordinator, markers, verification, ways to others."""

from collections.abc import Callable
from typing import Any, Protocol

from broker.background import Tasks, log_failure
from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.coordinator.group_coordinator import GroupCoordinator
from broker.coordinator.producer_ids import ProducerIdAllocator
from broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from broker.coordinator.transactions.transaction_markers import MarkerChannel, MarkerWriter
from broker.coordinator.transactions.verified_appends import VerifiedAppends
from broker.metadata.metadata_service import MetadataService
from broker.metadata.records import BrokerEndpoint
from broker.replication.replica_manager import ReplicaManager


class BrokerConnection(Protocol):
    """Requests to one address (broker.server's PeerClient)."""

    async def send(self, api_key: int, api_version: int, message: Any) -> Any:
        """The response message.

        :raises OSError: there is no answer.
        """

    async def close(self) -> None:
        """End the connection."""


class Transactions:
    """The parts that handlers use: `coordinator`, `verified` (before first records), `markers`."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataService,
        clock: Clock,
        config: BrokerConfig,
        *,
        producer_ids: ProducerIdAllocator,
        groups: GroupCoordinator,
        connect: Callable[[BrokerEndpoint], BrokerConnection],
    ) -> None:
        self._metadata = metadata
        self._listener_name = config.listeners.inter_broker
        self._connect = connect
        self._peers: dict[int, tuple[BrokerEndpoint, BrokerConnection]] = {}
        self._closing = Tasks("end of a connection to a broker", log_failure)
        node_id = config.node_id
        self.markers = MarkerWriter(replicas, clock, groups.offsets.end_transaction)
        channel = MarkerChannel(self.markers, metadata, self._to_broker, node_id=node_id)
        self.coordinator = TransactionCoordinator(
            replicas, metadata, clock, config, producer_ids=producer_ids, markers=channel
        )
        self.verified = VerifiedAppends(
            self.coordinator, metadata, self._to_broker, node_id=node_id
        )
        groups.offsets.verify = self.verified.verify

    def start(self) -> None:
        """Load what this node leads; needs a running loop."""
        self.coordinator.start()

    async def stop(self) -> None:
        """End all background work and connections."""
        await self.verified.stop()
        await self.coordinator.stop()
        for _, peer in self._peers.values():
            await peer.close()
        await self._closing.wait(None)

    def _to_broker(self, broker_id: int) -> BrokerConnection | None:
        broker = self._metadata.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._listener_name)
        if endpoint is None:
            return None
        known = self._peers.get(broker_id)
        if known is not None and known[0] != endpoint:
            self._closing.start(known[1].close())
        if known is None or known[0] != endpoint:
            known = self._peers[broker_id] = endpoint, self._connect(endpoint)
        return known[1]
