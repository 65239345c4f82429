"""A node of quorum and controller alone, without partitions, on real sockets and files."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from broker.clock import Clock, SystemClock
from broker.config.broker_config import BrokerConfig
from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerChannel
from broker.controller.internal_topics import internal_topics
from broker.controller.periodic_elections import ControllerSettings
from broker.controller.topics import TopicDefaults
from broker.handlers.controller_apis import CONTROLLER_APIS
from broker.handlers.registry import load_registry
from broker.handlers.services import Listener, NodeServices
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.metadata.metadata_service import MetadataService
from broker.metadata.records import BrokerEndpoint
from broker.raft.config import QuorumConfig, Voter, parse_voters
from broker.raft.metadata_log import MetadataLog
from broker.raft.node import QuorumNode
from broker.raft.vote_file import VoteFile
from broker.server.broker_lifecycle import BrokerIdentity, BrokerLifecycle
from broker.server.listener import ListenerServer
from broker.server.listener_context import ListenerContext
from broker.server.peers import PeerClient

METADATA_SEGMENT_BYTES = 64 * 1024 * 1024
METADATA_BATCH_BYTES_MAX = 32 * 1024 * 1024


class MetadataPlane:
    """Owns the quorum, the controller and the registration of one node."""

    def __init__(self, *, config: BrokerConfig, logs: LogManager, clock: Clock) -> None:
        self._config = config
        partition_log = _open_metadata_log(logs)
        quorum_config = _quorum_config(config)
        # Elections must differ between nodes and runs; this is no secret.
        dice = random.Random()
        self.metadata = MetadataService(node_id=config.node_id, cluster_id=config.cluster_id)
        self.quorum = QuorumNode(
            config=quorum_config,
            cluster_id=config.cluster_id,
            log=MetadataLog(partition_log, clock),
            store=VoteFile(partition_log.directory, voters=quorum_config.voter_ids),
            dice=dice,
            clock=clock,
            connect=self._connect,
        )
        self.active = ActiveController(
            quorum=self.quorum,
            clock=clock,
            settings=_controller_settings(config),
            broker_config=config,
            topic_defaults=TopicDefaults(
                partitions=config.num_partitions,
                replication_factor=config.default_replication_factor,
                dice=dice,
                new_id=uuid4,
                is_deletion_enabled=config.delete_topic_enable,
            ),
        )
        self.controller = ControllerChannel(
            quorum=self.quorum,
            active=self.active,
            metadata=self.metadata,
            clock=clock,
            connect=self._connect,
            apis=CONTROLLER_APIS,
            internal_topics=internal_topics(config),
        )
        self.lifecycle = BrokerLifecycle(
            identity=BrokerIdentity(
                broker_id=config.node_id,
                cluster_id=config.cluster_id,
                incarnation_id=uuid4(),
                endpoints=config.listeners.advertised,
                rack=config.rack,
                log_dir=uuid4(),
            ),
            controller=self.controller,
            metadata=self.metadata,
            clock=clock,
            heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
        )

    def start(self) -> None:
        """Vote and register in the background."""
        self.quorum.start()
        self.lifecycle.start()

    async def stop(self) -> None:
        """Hand the quorum's leadership over and end all connections."""
        await self.lifecycle.stop()
        await self.quorum.stop()
        await self.controller.close()

    def _connect(self, voter: Voter) -> PeerClient:
        return PeerClient(host=voter.host, port=voter.port, client_id=str(self._config.node_id))


def _open_metadata_log(logs: LogManager) -> PartitionLog:
    """`__cluster_metadata-0`, which no retention ever shortens."""
    config = LogConfig(
        segment_bytes=METADATA_SEGMENT_BYTES,
        cleanup_policy=frozenset(),
        max_message_bytes=METADATA_BATCH_BYTES_MAX,
    )
    return logs.metadata_log(config)


def _quorum_config(config: BrokerConfig) -> QuorumConfig:
    voters = parse_voters(config.quorum_voters)
    return QuorumConfig.from_properties(config.properties, node_id=config.node_id, voters=voters)


def _controller_settings(config: BrokerConfig) -> ControllerSettings:
    session_ms = config.broker_session_timeout_ms
    return ControllerSettings(
        session_timeout_ms=session_ms,
        first_grace_ms=max(3 * config.broker_heartbeat_interval_ms, session_ms * 3 // 5),
        is_rebalance_enabled=config.auto_leader_rebalance_enable,
        rebalance_interval_ms=1000 * config.leader_imbalance_check_interval_seconds,
    )


class MetadataNode:
    """A node that serves both listeners, but only what needs no partitions."""

    def __init__(self, config: BrokerConfig) -> None:
        clock = SystemClock()
        self.config = config
        self.logs = LogManager.open(
            config.log_dir,
            node_id=config.node_id,
            cluster_id=config.cluster_id,
            clock=clock,
            defaults=LogConfig(),
        )
        self.plane = MetadataPlane(config=config, logs=self.logs, clock=clock)
        absent: Any = None
        services = NodeServices(
            config=config,
            clock=clock,
            metadata=self.plane.metadata,
            controller=self.plane.controller,
            replicas=absent,
            logs=self.logs,
            groups=absent,
            producer_ids=absent,
            transactions=absent,
        )
        self._servers = [_server(config.listeners.clients[0], Listener.CLIENT, services)]
        if config.listeners.controller is not None:
            self._servers.append(
                _server(config.listeners.controller, Listener.CONTROLLER, services)
            )

    async def start(self) -> None:
        """Listen, vote, register."""
        for server in self._servers:
            await server.bind()
            await server.serve()
        self.plane.start()

    async def stop(self) -> None:
        """Leave in order."""
        await self.plane.stop()
        for server in self._servers:
            await server.close()
        self.logs.shutdown(clean=True)

    async def kill(self) -> None:
        """Vanish without a word, as far as one process can play the death of another."""
        for server in self._servers:
            await server.close()
        await self.plane.lifecycle.stop()
        await self.plane.quorum.abandon()
        await self.plane.controller.close()
        self.logs.shutdown(clean=False)


def _server(endpoint: BrokerEndpoint, listener: Listener, services: NodeServices) -> ListenerServer:
    context = ListenerContext(
        listener_name=endpoint.name,
        registry=load_registry(listener),
        node=services,
        connections_max=lambda: 1000,
    )
    return ListenerServer((endpoint,), context, connections_idle_ms_max=600_000)


def node_config(
    directory: Path, *, node_id: int, ports: Mapping[int, tuple[int, int]], **more: str
) -> BrokerConfig:
    """The config of one node of a cluster; `ports` are (client, controller) by node id."""
    client, controller = ports[node_id]
    return BrokerConfig.from_properties(
        {
            "node.id": str(node_id),
            "process.roles": "broker,controller",
            "cluster.id": "test-cluster",
            "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(
                f"{id_}@127.0.0.1:{port}" for id_, (_, port) in ports.items()
            ),
            "log.dirs": str(directory / str(node_id)),
            **more,
        }
    )
