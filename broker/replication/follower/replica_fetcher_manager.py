"""The fetchers of this node, one per leader that it follows something on."""

import logging
from collections.abc import Callable, Mapping

from broker.background import Tasks, log_failure
from broker.clock import Clock
from broker.metadata.image import BrokerImage
from broker.metadata.records import BrokerEndpoint
from broker.replication.follower.replica_fetcher import FetcherConfig, ReplicaFetcher
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects
from broker.replication.ports import ConnectToLeader
from broker.replication.throttle import ByteBucket

log = logging.getLogger(__name__)


class ReplicaFetcherManager:
    """Knows which partition is fetched from whom, and where brokers are reached."""

    def __init__(
        self,
        *,
        config: FetcherConfig,
        listener_name: str,
        replicas: PartitionEffects,
        clock: Clock,
        connect: ConnectToLeader,
        throttle: ByteBucket,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._config = config
        self._listener_name = listener_name
        self._replicas = replicas
        self._clock = clock
        self._connect = connect
        self._throttle = throttle
        self._broker_epoch = broker_epoch
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._addresses: dict[int, BrokerEndpoint] = {}
        self._closing = Tasks("end of a replica fetcher", log_failure)

    def follow(self, partition: Partition, leader: int) -> None:
        """Fetch a partition from this leader, and from no other."""
        self.unfollow(partition)
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            address = self._addresses.get(leader)
            if address is None:
                log.warning(
                    "leader %d of %s is not registered with a listener %s",
                    *(leader, partition.topic, self._listener_name),
                )
                return
            fetcher = self._start(leader, address)
        fetcher.add(partition)

    def unfollow(self, partition: Partition) -> None:
        """Stop fetching a partition; a fetcher without partitions ends."""
        for leader, fetcher in list(self._fetchers.items()):
            if partition in fetcher:
                fetcher.remove(partition)
                if fetcher.is_idle:
                    self._stop(leader)

    def brokers_changed(self, brokers: Mapping[int, BrokerImage]) -> None:
        """Note addresses; a leader that moved (or that we could not reach by any) is followed
        over a new connection.
        """
        moved = []
        for broker_id, broker in brokers.items():
            address = broker.endpoint(self._listener_name)
            if address is None:
                self._addresses.pop(broker_id, None)
            elif self._addresses.get(broker_id) != address:
                self._addresses[broker_id] = address
                moved.append(broker_id)
        for leader in moved:
            if leader in self._fetchers:
                self._stop(leader)
            for partition in self._replicas.partitions():
                if not partition.is_leader and partition.leader == leader:
                    self.follow(partition, leader)

    def throttle_changed(self) -> None:
        """Tell every fetcher that the follower's rate has changed."""
        for fetcher in self._fetchers.values():
            fetcher.throttle_changed()

    async def close(self) -> None:
        """End every fetcher."""
        for leader in list(self._fetchers):
            self._stop(leader)
        await self._closing.wait(None)

    def _start(self, leader: int, address: BrokerEndpoint) -> ReplicaFetcher:
        fetcher = ReplicaFetcher(
            leader=leader,
            config=self._config,
            replicas=self._replicas,
            clock=self._clock,
            channel=self._connect(address),
            throttle=self._throttle,
            broker_epoch=self._broker_epoch,
        )
        self._fetchers[leader] = fetcher
        return fetcher

    def _stop(self, leader: int) -> None:
        fetcher = self._fetchers.pop(leader)
        self._closing.start(fetcher.close())
