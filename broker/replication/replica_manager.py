"""The replicas of one node, put together: what handlers, coordinators and the node use."""

import asyncio
from collections.abc import Iterable, Iterator

from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.log.log_manager import LogManager
from broker.log.log_validator import AppendInfo
from broker.metadata.metadata_service import MetadataService
from broker.replication.follower.replica_fetcher import FetcherConfig
from broker.replication.follower.replica_fetcher_manager import ReplicaFetcherManager
from broker.replication.isr_scan_and_checkpoint import IsrScanAndCheckpoint
from broker.replication.leader.alter_partition_manager import AlterPartitionManager
from broker.replication.leader.appender import Appender
from broker.replication.leader.fetch_reader import FetchReader
from broker.replication.leader.fetch_service import FetchService
from broker.replication.leader.record_deletion import delete_records
from broker.replication.metadata_publisher import MetadataPublisher
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects
from broker.replication.ports import AlterPartitionPort, ConfigPort, ConnectToLeader
from broker.replication.throttle import ByteBucket
from broker.replication.timer_wheel import TimerWheel


class ReplicaManager:
    """Everything of broker.replication for one node.

    Make it before the metadata is replayed; `start` it when the image has caught up with the
    cluster, before this broker is unfenced; `close` it before the logs.
    """

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        logs: LogManager,
        metadata: MetadataService,
        configs: ConfigPort,
        controller: AlterPartitionPort,
        connect: ConnectToLeader,
    ) -> None:
        leader_throttle, follower_throttle = ByteBucket(), ByteBucket()
        self._wheel = TimerWheel(clock)
        self._replicas = replicas = PartitionEffects(self._wheel, logs.disk)
        self.appender = Appender(
            replicas=replicas, clock=clock, are_records_checked=config.produce_check_records
        )
        self.fetches = FetchService(
            replicas=replicas,
            reader=FetchReader(replicas=replicas, clock=clock),
            clock=clock,
            bytes_max=config.fetch_max_bytes,
            sessions_max=config.max_incremental_fetch_session_cache_slots,
            throttle=leader_throttle,
        )
        self._isr = AlterPartitionManager(
            node_id=config.node_id,
            replicas=replicas,
            controller=controller,
            broker_epoch=lambda: metadata.broker_epoch,
            clock=clock,
        )
        self._fetchers = ReplicaFetcherManager(
            config=_fetcher_config(config),
            listener_name=config.listeners.inter_broker,
            replicas=replicas,
            clock=clock,
            connect=connect,
            throttle=follower_throttle,
            broker_epoch=lambda: metadata.broker_epoch,
        )
        replicas.fetchers, replicas.isr = self._fetchers, self._isr
        self._housekeeper = IsrScanAndCheckpoint(
            replicas=replicas,
            logs=logs,
            clock=clock,
            lag_time_ms_max=config.replica_lag_time_max_ms,
            checkpoint_ms=config.replica_high_watermark_checkpoint_interval_ms,
        )
        self._follower = MetadataPublisher(
            node_id=config.node_id,
            lag_time_ms_max=config.replica_lag_time_max_ms,
            clock=clock,
            logs=logs,
            replicas=replicas,
            fetchers=self._fetchers,
            metadata=metadata,
            configs=configs,
            throttles=(leader_throttle, follower_throttle),
        )

    def start(self) -> None:
        """Take the metadata image, which has caught up, and serve; needs a running loop."""
        self._follower.start()
        self._housekeeper.start()

    async def close(self) -> None:
        """Stop fetching and proposing, save the high watermarks; the logs stay open."""
        await self._follower.close()
        await self._fetchers.close()
        await self._replicas.flushes.close()
        await self._isr.close()
        await self._housekeeper.close()
        self._wheel.close()

    def partition(self, topic: str, partition: int) -> Partition | None:
        """The replica on this node."""
        return self._replicas.by_name.get((topic, partition))

    def partitions(self) -> Iterable[Partition]:
        """Every replica on this node."""
        return self._replicas.partitions()

    def high_watermarks(self) -> Iterator[tuple[tuple[str, int], int]]:
        """High watermarks of every replica, for LogManager.upkeep."""
        return self._housekeeper.high_watermarks()

    async def append_and_wait(
        self,
        topic: str,
        partition: int,
        records: bytes,
        *,
        acks: int = -1,
        timeout_ms: int = 5000,
        verification: object = None,
    ) -> AppendInfo:
        """Append the broker's own records; the result carries the error, nothing is raised."""
        done: asyncio.Future[AppendInfo] = asyncio.get_running_loop().create_future()

        def on_done(result: AppendInfo) -> None:
            if not done.done():
                done.set_result(result)

        self.appender.append(
            topic,
            partition,
            memoryview(records),
            acks=acks,
            on_done=on_done,
            timeout_ms=timeout_ms,
            verification=verification,
        )
        return await done

    async def delete_records(
        self, topic: str, partition: int, offset: int, *, timeout_ms: int
    ) -> int | Exception:
        """The low watermark of the partition afterwards, or why not; -1 as offset means all."""
        return await delete_records(self._replicas, topic, partition, offset, timeout_ms)


def _fetcher_config(config: BrokerConfig) -> FetcherConfig:
    return FetcherConfig(
        node_id=config.node_id,
        wait_ms_max=config.replica_fetch_wait_max_ms,
        bytes_min=config.replica_fetch_min_bytes,
        partition_bytes_max=config.replica_fetch_max_bytes,
        response_bytes_max=config.replica_fetch_response_max_bytes,
        backoff_first_ms=config.replica_fetch_backoff_first_ms,
        backoff_ms=config.replica_fetch_backoff_ms,
    )
