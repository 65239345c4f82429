"""Data and Protocols by which the operator core asks a cluster, in Kafka's words.

The use cases know only these; `admin.kafka_admin` and `admin.groups` are the adapters.
Every method raises KafkaPortError (see control.kafka.errors).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from broker.metrics_schema import LogDirSample
from control.model.ids import TopicPartition


class ConfigScope(IntEnum):
    """Kafka's config resource types."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ElectionType(IntEnum):
    """Kind of leader that ElectLeaders elects."""

    PREFERRED = 0
    UNCLEAN = 1


class OffsetSpec(IntEnum):
    """ListOffsets' special timestamps; any value >= 0 is a time in ms."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """A live broker and where it listens."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """Brokers and controller of the cluster now. Fenced brokers are not listed."""

    cluster_id: str
    controller_id: int | None
    brokers: tuple[BrokerNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """One partition; `leader` is -1 when there is none. During a reassignment `replicas` is
    the whole intermediate set, adding and removing ones included."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    topic_id: UUID | None = None
    """Null before Kafka 2.8."""
    is_leader_hidden: bool = False
    """Its leader lacks the listener by which the cluster was asked, and is -1 here."""

    @property
    def key(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas that will stay when a running reassignment is done."""
        return tuple(r for r in self.replicas if r not in self.removing_replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """One topic with its partitions in order."""

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: tuple[PartitionMetadata, ...]


CLUSTERS_OWN: Final = -1
"""A number of partitions or replicas that the cluster decides by its own defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create. -1 leaves a number to the cluster's default; `assignment` (partition →
    replicas) excludes both numbers."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] | None = None
    assignment: Mapping[int, Sequence[int]] | None = None


class ConfigSynonym(NamedTuple):
    """One place that could give a config its value, such as a broker's ``log.retention.hours``."""

    name: str
    value: str | None
    source: int
    """As in ``ConfigEntry``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One config of a topic or broker; `value` is null when the broker hides it."""

    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: int
    """Kafka's number: 1 topic, 2 broker, 3 all brokers, 4 properties file, 5 default."""
    type: int = 0
    """Kafka's number of its type; 0: not told (before 2.6)."""
    documentation: str = ""
    """Kafka's own text, where it was asked for."""
    synonyms: tuple[ConfigSynonym, ...] = ()
    """Where it was asked for: what is in force first, then what would be without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    """Owner of configs: a topic's name or a broker's id."""

    scope: ConfigScope
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingReassignment:
    """A running reassignment, from ListPartitionReassignments."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def key(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """Where it goes."""
        return tuple(r for r in self.replicas if r not in self.removing_replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """Bytes of one replica on one broker."""

    broker: int
    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool
    log_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """A log directory; the byte figures are null where the broker does not tell (before 3.3)."""

    broker: int
    path: str
    total_bytes: int | None
    usable_bytes: int | None
    replicas: tuple[ReplicaLog, ...]
    is_cordoned: bool = False
    """Whether it takes no new replicas (KIP-1066); false where the broker does not tell (before
    4.3)."""
    is_failed: bool = False
    """Whether its broker can use it no more; then only its path is known."""

    @property
    def sample(self) -> LogDirSample:
        """Its figures, without the names of its replicas."""
        return LogDirSample(
            path=self.path,
            total_bytes=self.total_bytes,
            usable_bytes=self.usable_bytes,
            size_bytes=sum(replica.size_bytes for replica in self.replicas),
            replicas=len(self.replicas),
            is_cordoned=self.is_cordoned,
            is_failed=self.is_failed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAt:
    """An offset found by ListOffsets; -1 when no record is that new."""

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    """A group as ListGroups names it."""

    group_id: str
    state: str
    protocol_type: str
    group_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member and what it owns."""

    member_id: str
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...]
    rack: str = ""
    """Its ``client.rack``; empty: it tells none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group's state and members."""

    group_id: str
    state: str
    protocol: str
    members: tuple[GroupMember, ...]
    group_type: str
    group_epoch: int | None = None
    """None for classic groups, which have none."""
    assignment_epoch: int | None = None
    """Below the group's epoch while a rebalance computes the new assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOffset:
    """Where a share group stands in a partition."""

    start: int | None
    """Every record before it is acknowledged or given up; None: nothing was delivered yet."""
    lag: int | None
    """Records not yet acknowledged, as the broker tells it; None where it does not."""


class TopicsPort(Protocol):
    """Topics and their configs."""

    async def describe_cluster(self) -> ClusterDescription:
        """Live brokers and the controller."""

    async def registered_brokers(self) -> frozenset[int] | None:
        """Those that are down as well; null where the cluster does not tell."""

    async def topics(
        self, names: Iterable[str] | None = None, *, leaves_out_unknown: bool = False
    ) -> tuple[TopicMetadata, ...]:
        """All topics, or the named ones; an unknown name is refused, or left out."""

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> None:
        """Create, and wait until every partition has a leader."""

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and its data."""

    async def create_partitions(self, topic: str, count: int) -> None:
        """Raise the number of partitions to `count`."""

    async def describe_configs(
        self, resource: ConfigResource, names: Iterable[str] | None = None
    ) -> tuple[ConfigEntry, ...]:
        """Every config with its value and source, or those of the names that there are."""

    async def describe_many_configs(
        self, resources: Iterable[ConfigResource], names: Iterable[str] | None = None
    ) -> Mapping[ConfigResource, tuple[ConfigEntry, ...]]:
        """describe_configs of several resources; topics that do not exist are left out."""

    async def alter_configs(
        self, resource: ConfigResource, changes: Mapping[str, str | None]
    ) -> None:
        """Set (or, with null, remove) single configs; others stay."""

    async def alter_many_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> None:
        """alter_configs for several resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRight:
    """A right that we lack, in Kafka's words, and the command that grants it."""

    operation: str
    """``ALTER``, ``ALTER_CONFIGS``."""
    resource: str
    """``cluster`` or ``topic``."""
    grant: str


class ReassignmentPort(Protocol):
    """Where replicas live and who leads."""

    async def missing_rights(self, topics: Iterable[str]) -> tuple[MissingRight, ...]:
        """Rights that we lack to reassign these topics with a throttle, as far as brokers tell."""

    async def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, Exception]:
        """Start (or, with null, cancel) reassignments; the answer names those refused."""

    async def list_reassignments(self) -> tuple[OngoingReassignment, ...]:
        """All running reassignments."""

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None, election: ElectionType
    ) -> Mapping[TopicPartition, Exception]:
        """Elect; the answer names those refused. Not needed counts as done."""

    async def log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> tuple[LogDir, ...]:
        """Bytes per replica, from every live broker or the named ones, of all partitions or
        the named ones."""


class GroupsPort(Protocol):
    """Consumer groups."""

    async def list_groups(self) -> tuple[ListedGroup, ...]:
        """Groups of all live brokers."""

    async def share_offsets(self, group_id: str) -> Mapping[TopicPartition, ShareOffset]:
        """Start offset and lag of every partition of a share group."""

    async def describe_group(self, group_id: str) -> GroupDescription:
        """State and members."""

    async def committed_offsets(self, group_id: str) -> Mapping[TopicPartition, int]:
        """Committed offsets; a partition without a commit is absent."""

    async def commit_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set offsets of a group without members."""

    async def delete_group(self, group_id: str) -> None:
        """Forget an empty group and its offsets."""


class AdminPort(TopicsPort, ReassignmentPort, Protocol):
    """Everything but groups."""


class ClusterPort(AdminPort, Protocol):
    """A whole cluster."""

    @property
    def groups(self) -> GroupsPort:
        """Its consumer groups."""
