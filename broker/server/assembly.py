"""The rooms of one node, made and wired; nothing here starts anything."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_bytes
from typing import Final, Protocol, TypeVar
from uuid import UUID, uuid4

from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.config.errors import ConfigError
from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerChannel
from broker.controller.internal_topics import internal_topics
from broker.controller.periodic_elections import ControllerSettings
from broker.controller.security.scram_control import scram_record
from broker.controller.topics import TopicDefaults
from broker.coordinator.config import GroupConfig
from broker.coordinator.group_coordinator import GroupCoordinator
from broker.coordinator.producer_ids import ProducerIdAllocator
from broker.coordinator.transactions.transactions import Transactions
from broker.handlers.controller_apis import CONTROLLER_APIS
from broker.handlers.registry import load_registry
from broker.handlers.services import Listener, NodeServices
from broker.log.config import LogConfig
from broker.log.disk.durable import force_file
from broker.log.log_manager import LogManager
from broker.metadata.authorization import Authorization, StandardAuthorizer
from broker.metadata.client_quotas import ClientQuotas
from broker.metadata.cordons import is_cordoned
from broker.metadata.effective_configs import (
    broker_config_value,
    effective_broker_config,
    effective_topic_config,
)
from broker.metadata.metadata_service import MetadataService
from broker.metadata.quota_rates import Windows
from broker.metadata.records import BrokerEndpoint, MetadataRecord
from broker.protocol import codec
from broker.protocol.frames import RequestMemory
from broker.protocol.scram import ScramCredential, salted_password
from broker.raft.config import QuorumConfig, Voter, parse_voters
from broker.raft.damaged_log import open_metadata_log
from broker.raft.metadata_log import MetadataLog
from broker.raft.node import QuorumNode
from broker.raft.vote_file import VoteFile
from broker.replication.replica_manager import ReplicaManager
from broker.server.acceptor import SocketShares, socket_shares
from broker.server.broker_lifecycle import BrokerIdentity, BrokerLifecycle
from broker.server.listener import ListenerServer
from broker.server.listener_context import ListenerContext
from broker.server.peers import PeerClient
from broker.server.sasl import ScramUsers
from broker.server.tls import TlsContext, client_context, server_context

SALT_BYTES: Final = 26

T = TypeVar("T")
Dial = Callable[..., PeerClient]
"""(listener, address, client id) -> a client of that address, by the listener's protocol."""


class Address(Protocol):
    """Where a broker or a voter listens."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """Everything that is started and stopped."""

    config: BrokerConfig
    incarnation_id: UUID
    services: NodeServices
    logs: LogManager
    quorum: QuorumNode
    metadata: MetadataService
    controller: ControllerChannel
    lifecycle: BrokerLifecycle
    replicas: ReplicaManager
    groups: GroupCoordinator
    transactions: Transactions
    connect_to_broker: Callable[..., PeerClient]
    """By the listener of brokers; takes an address and, where it is another, a client id."""
    client_listeners: ListenerServer
    controller_listener: ListenerServer | None
    """None on a node that does not vote."""

    @property
    def listeners(self) -> tuple[ListenerServer, ...]:
        """Those that this node has."""
        both = (self.client_listeners, self.controller_listener)
        return tuple(listener for listener in both if listener is not None)


class NodeConfigs:
    """Gives broker.replication its configs (ConfigPort)."""

    def __init__(self, config: BrokerConfig, metadata: MetadataService) -> None:
        self._config = config
        self._metadata = metadata

    def topic(self, topic: str) -> Mapping[str, str]:
        """A topic's configs by their topic-level names, with all defaults."""
        return effective_topic_config(self._metadata.image, self._config, topic)

    def broker(self) -> Mapping[str, str]:
        """This node's configs, dynamic ones over those of its file."""
        return effective_broker_config(self._metadata.image, self._config)


def open_logs(config: BrokerConfig, clock: Clock) -> LogManager:
    """Lock and load the data directory.

    :raises LogError: it cannot be used.
    """
    logs = LogManager.open(
        config.log_dir,
        node_id=config.node_id,
        cluster_id=config.cluster_id,
        clock=clock,
        defaults=LogConfig.from_broker_properties(config.properties),
    )
    logs.retention_check_ms = config.log_retention_check_interval_ms
    logs.checkpoint_ms = min(  # one call writes both files, where they changed
        config.log_flush_offset_checkpoint_interval_ms,
        config.log_flush_start_offset_checkpoint_interval_ms,
    )
    logs.cleaner.is_enabled = config.log_cleaner_enable
    logs.cleaner.backoff_ms = config.log_cleaner_backoff_ms
    return logs


def assemble(config: BrokerConfig, clock: Clock, logs: LogManager) -> NodeParts:
    """All parts of a node over its open logs.

    :raises ConfigError: a property that a room cannot use.
    """
    incarnation_id, listeners, dial = uuid4(), config.listeners, _dialler(config, clock)
    metadata = MetadataService(node_id=config.node_id, cluster_id=config.cluster_id)
    connect_to_voter = partial(dial, listeners.controller_name)
    connect_to_broker = partial(dial, listeners.inter_broker)
    quorum = _build_quorum(config, clock, logs, connect_to_voter)
    authorization = _authorization(config, metadata)
    quotas = _quotas(config, metadata, clock)
    active = _build_active_controller(config, clock, quorum, authorization, quotas)
    controller = _build_controller(config, clock, active, metadata, connect_to_voter)
    replicas = ReplicaManager(
        config=config,
        clock=clock,
        logs=logs,
        metadata=metadata,
        configs=NodeConfigs(config, metadata),
        controller=controller,
        connect=connect_to_broker,
    )
    group_config = _group_config(config)
    groups = GroupCoordinator(replicas, metadata, clock, group_config, node_id=config.node_id)
    producer_ids = _build_producer_ids(config, metadata, controller)
    transactions = Transactions(
        replicas,
        metadata,
        clock,
        config,
        producer_ids=producer_ids,
        groups=groups,
        connect=connect_to_broker,
    )
    services = NodeServices(
        config=config,
        clock=clock,
        metadata=metadata,
        controller=controller,
        replicas=replicas,
        logs=logs,
        groups=groups,
        producer_ids=producer_ids,
        transactions=transactions,
        authorization=authorization,
        quotas=quotas,
    )
    return NodeParts(
        config=config,
        incarnation_id=incarnation_id,
        services=services,
        logs=logs,
        quorum=quorum,
        metadata=metadata,
        controller=controller,
        lifecycle=_build_lifecycle(config, _identity(config, incarnation_id, logs), services),
        replicas=replicas,
        groups=groups,
        transactions=transactions,
        connect_to_broker=connect_to_broker,
        client_listeners=_build_listener(config, services, Listener.CLIENT, listeners.clients),
        controller_listener=_build_controller_listener(config, services),
    )


def _group_config(config: BrokerConfig) -> GroupConfig:
    return _read(lambda: GroupConfig.from_properties(config.properties))


def _build_producer_ids(
    config: BrokerConfig, metadata: MetadataService, controller: ControllerChannel
) -> ProducerIdAllocator:
    return ProducerIdAllocator(
        node_id=config.node_id,
        broker_epoch=lambda: metadata.broker_epoch,
        controller=controller,
    )


def _quotas(config: BrokerConfig, metadata: MetadataService, clock: Clock) -> ClientQuotas:
    return ClientQuotas(
        lambda: metadata.image.quotas,
        clock=clock,
        windows=Windows(
            count=config.quota_window_num, size_ms=config.quota_window_size_seconds * 1_000
        ),
        mutation_windows=Windows(
            count=config.controller_quota_window_num,
            size_ms=config.controller_quota_window_size_seconds * 1_000,
        ),
    )


def _authorization(config: BrokerConfig, metadata: MetadataService) -> Authorization:
    if config.authorizer is None:
        return Authorization()
    authorizer = StandardAuthorizer(
        lambda: metadata.image.acls,
        super_users=config.authorizer.super_users,
        allows_unlisted=config.authorizer.allows_unlisted,
    )
    return Authorization(authorizer, authorizer.allows_some)


def _name(config: BrokerConfig) -> str:
    return f"broker-{config.node_id}"


def _read(read: Callable[[], T]) -> T:
    """Reads a room's properties; turns its complaint into the operator's form."""
    try:
        return read()
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _build_quorum(
    config: BrokerConfig,
    clock: Clock,
    logs: LogManager,
    connect_to_voter: Callable[[Voter], PeerClient],
) -> QuorumNode:
    voters = _read(lambda: parse_voters(config.quorum_voters))
    voter_ids = {voter.id for voter in voters}
    _check_votes(config, voter_ids)
    store = VoteFile(logs.metadata_directory, voters=tuple(voter_ids))
    log = open_metadata_log(
        logs, is_alone=voter_ids == {config.node_id}, epoch_max=store.read().epoch
    )
    force_file(logs.directory)  # a vote that is lost with the whole directory is given twice
    # Only the quorum itself, behind its snapshots, moves the start of this log.
    log.config = replace(log.config, cleanup_policy=frozenset())
    quorum_config = _read(
        lambda: QuorumConfig.from_properties(
            config.properties, node_id=config.node_id, voters=voters
        )
    )
    return QuorumNode(
        config=quorum_config,
        cluster_id=config.cluster_id,
        log=MetadataLog(log, clock),
        store=VoteFile(log.directory, voters=quorum_config.voter_ids),
        dice=_dice(),
        clock=clock,
        connect=connect_to_voter,
    )


def _check_votes(config: BrokerConfig, voter_ids: set[int]) -> None:
    is_voter, is_controller = config.node_id in voter_ids, config.listeners.controller is not None
    if is_controller and not is_voter:
        raise ConfigError(
            f"controller.quorum.voters={config.quorum_voters} lacks node.id {config.node_id}; "
            "add it, or write process.roles=broker for a node that does not vote"
        )
    if is_voter and not is_controller:
        raise ConfigError(
            f"controller.quorum.voters={config.quorum_voters} names node.id {config.node_id}, and "
            "process.roles=broker; write process.roles=broker,controller for a node that votes"
        )


def _dice() -> random.Random:
    return random.Random()  # noqa: S311  # spreads elections and replicas, guards nothing


def _dialler(config: BrokerConfig, clock: Clock) -> Dial:
    tls = {
        name: TlsContext(found, client_context, clock.monotonic_ms)
        for name, found in config.tls.items()
    }

    def dial(listener: str, to: Address, client_id: str = _name(config)) -> PeerClient:
        sasl = config.sasl.get(listener)
        return PeerClient(
            host=to.host,
            port=to.port,
            client_id=client_id,
            tls=tls.get(listener),
            login=None if sasl is None else sasl.own,
        )

    return dial


def _build_active_controller(
    config: BrokerConfig,
    clock: Clock,
    quorum: QuorumNode,
    authorization: Authorization,
    quotas: ClientQuotas,
) -> ActiveController:
    return ActiveController(
        quorum=quorum,
        clock=clock,
        settings=ControllerSettings(
            session_timeout_ms=config.broker_session_timeout_ms,
            first_grace_ms=config.broker_session_timeout_ms // 2,
            is_rebalance_enabled=config.auto_leader_rebalance_enable,
            rebalance_interval_ms=config.leader_imbalance_check_interval_seconds * 1000,
            unclean_interval_ms=config.unclean_leader_election_interval_ms,
            imbalance_percentage_max=config.leader_imbalance_per_broker_percentage,
        ),
        broker_config=config,
        topic_defaults=TopicDefaults(
            partitions=config.num_partitions,
            replication_factor=config.default_replication_factor,
            dice=_dice(),
            new_id=uuid4,
            is_deletion_enabled=config.delete_topic_enable,
        ),
        bootstrap=_bootstrap_records(config),
        authorization=authorization,
        quotas=quotas,
    )


def _build_controller(
    config: BrokerConfig,
    clock: Clock,
    active: ActiveController,
    metadata: MetadataService,
    connect_to_voter: Callable[[Voter], PeerClient],
) -> ControllerChannel:
    return ControllerChannel(
        quorum=active.quorum,
        active=active,
        metadata=metadata,
        clock=clock,
        connect=connect_to_voter,
        apis=CONTROLLER_APIS,
        internal_topics=internal_topics(config),
    )


def _identity(config: BrokerConfig, incarnation_id: UUID, logs: LogManager) -> BrokerIdentity:
    return BrokerIdentity(
        broker_id=config.node_id,
        cluster_id=config.cluster_id,
        incarnation_id=incarnation_id,
        endpoints=config.listeners.advertised,
        rack=config.rack,
        log_dir=logs.directory_id,
    )


def _build_lifecycle(
    config: BrokerConfig, identity: BrokerIdentity, services: NodeServices
) -> BrokerLifecycle:
    return BrokerLifecycle(
        identity=identity,
        controller=services.controller,
        metadata=services.metadata,
        clock=services.clock,
        heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
        is_able=services.logs.disk.is_well,
        is_cordoned=lambda: is_cordoned(services.metadata.image, config, services.logs.directory),
    )


def _connections_max(config: BrokerConfig, metadata: MetadataService) -> int:
    """max.connections, which may be altered while the node runs; an older build took 0, which
    would lock out who mends it."""
    altered = int(broker_config_value(metadata.image, config, "max.connections") or 0)
    return altered if altered > 0 else config.max_connections


def _limit_of(
    listener: Listener, config: BrokerConfig, metadata: MetadataService, shares: SocketShares
) -> Callable[[], int]:
    """Clients do not take the connections of the quorum."""
    if listener is Listener.CONTROLLER:
        return lambda: shares.controller
    return lambda: min(_connections_max(config, metadata), shares.clients)


def _is_broker(frame: memoryview, metadata: MetadataService) -> bool:
    """By its word: brokers name themselves as `_name` says."""
    name = codec.decode_header(frame).client_id or ""
    return name in {f"broker-{broker_id}" for broker_id in metadata.image.brokers}


def _build_controller_listener(
    config: BrokerConfig, services: NodeServices
) -> ListenerServer | None:
    endpoint = config.listeners.controller
    if endpoint is None:
        return None
    return _build_listener(config, services, Listener.CONTROLLER, (endpoint,))


def _build_listener(
    config: BrokerConfig,
    services: NodeServices,
    listener: Listener,
    endpoints: tuple[BrokerEndpoint, ...],
) -> ListenerServer:
    shares = socket_shares()
    queued_bytes_max = config.queued_max_request_bytes
    context = ListenerContext(
        listener_name=endpoints[0].name,
        registry=load_registry(listener),
        node=services,
        connections_max=_limit_of(listener, config, services.metadata, shares),
        frame_bytes_max=config.socket_request_max_bytes,
        reserve=shares.reserve if listener is Listener.CLIENT else 0,
        is_throttled=listener is Listener.CLIENT,
        is_peer=lambda frame: _is_broker(frame, services.metadata),
        memory=RequestMemory(queued_bytes_max if queued_bytes_max > 0 else None),
        scram=ScramUsers(services.metadata),
    )
    return ListenerServer(
        endpoints,
        context,
        connections_idle_ms_max=config.connections_max_idle_ms,
        tls={
            it.name: TlsContext(config.tls[it.name], server_context, services.clock.monotonic_ms)
            for it in endpoints
            if it.name in config.tls
        },
        sasl=config.sasl,
    )


def _bootstrap_records(config: BrokerConfig) -> tuple[MetadataRecord, ...]:
    """The first users of a new cluster."""
    found = []
    for user in config.bootstrap_users:
        salt, kind = token_bytes(SALT_BYTES), user.mechanism
        salted = salted_password(kind, user.password, salt=salt, iterations=user.iterations)
        credential = ScramCredential.of(kind, salted, salt=salt, iterations=user.iterations)
        found.append(scram_record(user.name, kind, credential))
    return tuple(found)
