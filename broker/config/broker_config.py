"""Typed configuration of one node, read from Kafka-style properties.

Names and defaults are Kafka's; a default that differs says why. What belongs to a log, to groups
or to the quorum is read by those rooms from `BrokerConfig.properties` (LogConfig, GroupConfig,
QuorumConfig). Every value of a property that Kafka knows is judged here, so they find it readable.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from broker.config.authorizer import AuthorizerConfig, is_read_by_authorizer
from broker.config.errors import ConfigError
from broker.config.listeners import WITH_LOGIN, WITH_TLS, Listeners, parse_listeners
from broker.config.properties import PropertiesError, parse_properties
from broker.config.sasl import BootstrapUser, SaslConfig, bootstrap_users, is_read_by_sasl
from broker.config.tls import TlsConfig, is_read_by_tls
from broker.config.without_effect import WITHOUT_EFFECT
from broker.metrics_schema import JOB_ROWS_PER_S
from broker.named_file import NamedFileError, read_text
from broker.protocol.known_configs import broker_configs, problem_of_value

log = logging.getLogger(__name__)


def _property(name: str, default: Any, *, at_least: int | None = None) -> Any:
    return field(default=default, metadata={"property": name, "at_least": at_least})


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Everything one node is told at its start; times in ms, sizes in bytes."""

    node_id: int
    cluster_id: str
    listeners: Listeners
    tls: Mapping[str, TlsConfig]
    """Of each listener over TLS, by its name."""
    sasl: Mapping[str, SaslConfig]
    """Of each listener that asks for a login, by its name."""
    authorizer: AuthorizerConfig | None
    """None: everybody may do everything."""
    bootstrap_users: tuple[BootstrapUser, ...]
    """Those whom a new cluster lets in by SCRAM."""
    quorum_voters: str
    log_dir: str
    rack: str | None
    properties: Mapping[str, str]
    """All properties as written, for the rooms that read their own."""

    num_partitions: int = _property("num.partitions", 1, at_least=1)
    default_replication_factor: int = _property("default.replication.factor", 1, at_least=1)
    auto_create_topics_enable: bool = _property("auto.create.topics.enable", True)
    delete_topic_enable: bool = _property("delete.topic.enable", True)

    socket_request_max_bytes: int = _property("socket.request.max.bytes", 104_857_600, at_least=1)
    # Kafka: -1, no bound. A node answers heartbeats whatever its clients send.
    queued_max_request_bytes: int = _property("queued.max.request.bytes", 268_435_456, at_least=-1)
    max_connections: int = _property("max.connections", 2_147_483_647, at_least=1)
    connections_max_idle_ms: int = _property("connections.max.idle.ms", 600_000, at_least=1)

    quota_window_num: int = _property("quota.window.num", 11, at_least=1)
    quota_window_size_seconds: int = _property("quota.window.size.seconds", 1, at_least=1)
    controller_quota_window_num: int = _property("controller.quota.window.num", 11, at_least=1)
    controller_quota_window_size_seconds: int = _property(
        "controller.quota.window.size.seconds", 1, at_least=1
    )

    fetch_max_bytes: int = _property("fetch.max.bytes", 57_671_680, at_least=1024)
    max_incremental_fetch_session_cache_slots: int = _property(
        "max.incremental.fetch.session.cache.slots", 1000, at_least=0
    )
    replica_lag_time_max_ms: int = _property("replica.lag.time.max.ms", 30_000, at_least=1)
    replica_fetch_wait_max_ms: int = _property("replica.fetch.wait.max.ms", 500, at_least=0)
    replica_fetch_min_bytes: int = _property("replica.fetch.min.bytes", 1, at_least=0)
    # Kafka: 1 MiB. Twice that is what the measured data path moves best in one step.
    replica_fetch_max_bytes: int = _property("replica.fetch.max.bytes", 2_097_152, at_least=0)
    replica_fetch_response_max_bytes: int = _property(
        "replica.fetch.response.max.bytes", 10_485_760, at_least=0
    )
    replica_fetch_backoff_ms: int = _property("replica.fetch.backoff.ms", 1000, at_least=0)
    # Ours alone. Doubled at each failure of a partition up to the one above: a leader that learns
    # of its role some milliseconds after its follower must not cost a second.
    replica_fetch_backoff_first_ms: int = _property(
        "partiscope.replica.fetch.backoff.first.ms", 20, at_least=1
    )
    replica_high_watermark_checkpoint_interval_ms: int = _property(
        "replica.high.watermark.checkpoint.interval.ms", 5000, at_least=1
    )
    log_flush_offset_checkpoint_interval_ms: int = _property(
        "log.flush.offset.checkpoint.interval.ms", 60_000, at_least=1
    )
    log_flush_start_offset_checkpoint_interval_ms: int = _property(
        "log.flush.start.offset.checkpoint.interval.ms", 60_000, at_least=1
    )
    log_retention_check_interval_ms: int = _property(
        "log.retention.check.interval.ms", 300_000, at_least=1
    )
    log_cleaner_enable: bool = _property("log.cleaner.enable", True)
    log_cleaner_backoff_ms: int = _property("log.cleaner.backoff.ms", 15_000, at_least=0)
    auto_leader_rebalance_enable: bool = _property("auto.leader.rebalance.enable", True)
    leader_imbalance_check_interval_seconds: int = _property(
        "leader.imbalance.check.interval.seconds", 300, at_least=1
    )
    unclean_leader_election_interval_ms: int = _property(
        "unclean.leader.election.interval.ms", 300_000, at_least=1
    )
    leader_imbalance_per_broker_percentage: int = _property(
        "leader.imbalance.per.broker.percentage", 10, at_least=0
    )

    # Kafka: 2000 and 9000. A dead broker must be replaced within five seconds.
    broker_heartbeat_interval_ms: int = _property("broker.heartbeat.interval.ms", 500, at_least=10)
    broker_session_timeout_ms: int = _property("broker.session.timeout.ms", 2500, at_least=100)
    controlled_shutdown_enable: bool = _property("controlled.shutdown.enable", True)
    # Ours alone: how long a stopping broker waits for its partitions to be led elsewhere.
    controlled_shutdown_timeout_ms: int = _property(
        "controlled.shutdown.timeout.ms", 3000, at_least=0
    )

    offsets_topic_num_partitions: int = _property("offsets.topic.num.partitions", 50, at_least=1)
    offsets_topic_replication_factor: int = _property(
        "offsets.topic.replication.factor", 3, at_least=1
    )
    offsets_topic_segment_bytes: int = _property(
        "offsets.topic.segment.bytes", 104_857_600, at_least=1
    )
    transaction_max_timeout_ms: int = _property("transaction.max.timeout.ms", 900_000, at_least=1)
    transaction_topic_num_partitions: int = _property(
        "transaction.state.log.num.partitions", 50, at_least=1
    )
    transaction_topic_replication_factor: int = _property(
        "transaction.state.log.replication.factor", 3, at_least=1
    )
    transaction_topic_min_isr: int = _property("transaction.state.log.min.isr", 2, at_least=1)
    transaction_topic_segment_bytes: int = _property(
        "transaction.state.log.segment.bytes", 104_857_600, at_least=1
    )
    transactional_id_expiration_ms: int = _property(
        "transactional.id.expiration.ms", 604_800_000, at_least=1
    )
    transaction_abort_interval_ms: int = _property(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, at_least=1
    )
    transaction_expiry_interval_ms: int = _property(
        "transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, at_least=1
    )

    # Ours alone. Kafka always reads every record; here it can be given up for speed.
    produce_check_records: bool = _property("partiscope.produce.check.records", True)

    metrics_interval_ms: int = _property("partiscope.metrics.interval.ms", 1000, at_least=100)
    # Of one core, for sampling itself; and what all brokers together may give the metrics job.
    metrics_cpu_percent: int = _property("partiscope.metrics.cpu.percent", 15, at_least=1)
    metrics_rows_per_second: int = _property(
        "partiscope.metrics.rows.per.second", JOB_ROWS_PER_S, at_least=100
    )
    metrics_enable: bool = _property("partiscope.metrics.enable", True)

    @classmethod
    def from_file(cls, path: str) -> "BrokerConfig":
        """Read a properties file.

        :raises ConfigError: unreadable file, missing or bad value.
        """
        try:
            return cls.from_properties(
                parse_properties(read_text(path, "--config", takes_pipes=True))
            )
        except NamedFileError as error:
            raise ConfigError(str(error)) from error
        except PropertiesError as error:
            raise ConfigError(f"{path}: {error}; write name=value") from error

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "BrokerConfig":
        """Check and type the properties; names without effect are warned about and kept.

        :raises ConfigError: missing or bad value.
        """
        listeners = parse_listeners(properties, is_controller=_is_controller(properties))
        config = cls(
            node_id=_parse_node_id(properties),
            cluster_id=_required(properties, "cluster.id"),
            listeners=listeners,
            tls={
                name: TlsConfig.from_properties(properties, name)
                for name, protocol in listeners.protocols.items()
                if protocol in WITH_TLS
            },
            sasl={
                name: SaslConfig.from_properties(
                    properties, name, logs_in=_logs_in(name, listeners)
                )
                for name, protocol in listeners.protocols.items()
                if protocol in WITH_LOGIN
            },
            authorizer=AuthorizerConfig.from_properties(properties),
            bootstrap_users=bootstrap_users(properties),
            quorum_voters=_required(properties, "controller.quorum.voters"),
            log_dir=_parse_log_dir(properties),
            rack=properties.get("broker.rack") or None,
            properties=dict(properties),
            **_typed_values(properties),
        )
        _check_values(properties)
        return config


def _logs_in(listener: str, listeners: Listeners) -> str:
    """The property with the mechanism by which this node logs in to others' listener."""
    if listener == listeners.controller_name:
        return "sasl.mechanism.controller.protocol"
    return "sasl.mechanism.inter.broker.protocol" if listener == listeners.inter_broker else ""


def _is_of_security(name: str) -> bool:
    return is_read_by_tls(name) or is_read_by_sasl(name) or is_read_by_authorizer(name)


def _typed_fields() -> list[Any]:
    return [entry for entry in fields(BrokerConfig) if "property" in entry.metadata]


_NO_CLASSES = "this broker loads no classes, so that it would check nothing; leave it out"
_ONLY = {
    "create.topic.policy.class.name": ("", _NO_CLASSES),
    "alter.config.policy.class.name": ("", _NO_CLASSES),
}
"""Properties with one value that can be kept, and why another one is refused."""


def _check_values(properties: Mapping[str, str]) -> None:
    """Refuses what cannot be kept, warns about what changes nothing."""
    typed = {entry.metadata["property"] for entry in _typed_fields()}
    for name, text in sorted(properties.items()):
        known = broker_configs().get(name)
        if name in WITHOUT_EFFECT:
            log.warning("the property %s has no effect: %s", name, WITHOUT_EFFECT[name])
        elif not (name in typed or known or name == "cluster.id" or _is_of_security(name)):
            log.warning("the property %s is not known and has no effect", name)
        only, why = _ONLY.get(name, (text.strip(), ""))
        if text.strip() != only:
            raise ConfigError(f"{name}={text}: {why}")
        problem = "" if known is None or not text.strip() else problem_of_value(known, text)
        if problem:
            raise ConfigError(f"{name}={text}: {problem[0].lower()}{problem[1:]}")


def _parse_node_id(properties: Mapping[str, str]) -> int:
    """node.id, or broker.id, its older name."""
    older = properties.get("broker.id", "").strip()
    text = properties.get("node.id", "").strip() or older or _required(properties, "node.id")
    if older not in ("", text):
        raise ConfigError(f"broker.id={older} differs from node.id={text}; write node.id alone")
    return _parse_int("node.id", text, 0)


def _typed_values(properties: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for entry in _typed_fields():
        name = entry.metadata["property"]
        if name in properties:
            text = properties[name].strip()
            if entry.type is bool:
                values[entry.name] = _parse_bool(name, text)
            else:
                values[entry.name] = _parse_int(name, text, entry.metadata["at_least"])
    return values


def _parse_int(name: str, text: str, at_least: int | None) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{name}={text} is not a whole number; write digits only") from None
    if at_least is not None and value < at_least:
        raise ConfigError(f"{name}={text} is too small; the least is {at_least}")
    return value


def _parse_bool(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{name}={text} is neither true nor false; write one of them")
    return text.lower() == "true"


def _required(properties: Mapping[str, str], name: str) -> str:
    value = properties.get(name, "").strip()
    if not value:
        raise ConfigError(f"{name} is missing; add a line {name}=… to the configuration")
    return value


def _is_controller(properties: Mapping[str, str]) -> bool:
    text = properties.get("process.roles", "broker,controller")
    roles = {role.strip() for role in text.split(",")}
    if "broker" not in roles or not roles <= {"broker", "controller"}:
        raise ConfigError(
            f"process.roles={text}: every node is a broker here; write broker,controller for one "
            "that votes in the metadata quorum, or broker"
        )
    return "controller" in roles


def _parse_log_dir(properties: Mapping[str, str]) -> str:
    text = properties.get("log.dirs") or _required(properties, "log.dir")
    directories = [part.strip() for part in text.split(",") if part.strip()]
    if len(directories) != 1:
        raise ConfigError(f"log.dirs={text}: one directory per node is supported; name just one")
    return directories[0]
