"""The cluster's metadata at one offset of the metadata log: immutable, shared by everyone.

A new image is made only by replaying committed records (broker.metadata.delta); unchanged
parts are shared between the old image and the new one, so holding on to an image is cheap and
comparing parts by identity is allowed. Named after Kafka's org.apache.kafka.image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from broker.metadata.acls import Acls
from broker.metadata.quotas import Quotas
from broker.metadata.records import BrokerEndpoint
from broker.protocol.scram import ScramCredential, ScramMechanism

NO_LEADER: Final = -1
UNKNOWN_OFFSET: Final = -1

_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


def _empty() -> Mapping[Any, Any]:
    return _EMPTY


class ResourceType(IntEnum):
    """Kafka's config resource types (ConfigResource.Type)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    """Resource of a config; a broker's name is its id, "" is the default of all brokers."""

    type: ResourceType
    name: str


def topic_resource(topic: str) -> ConfigResource:
    """The config resource of a topic."""
    return ConfigResource(type=ResourceType.TOPIC, name=topic)


def broker_resource(broker_id: int | None) -> ConfigResource:
    """The config resource of one broker, or with None the default of all brokers."""
    name = "" if broker_id is None else str(broker_id)
    return ConfigResource(type=ResourceType.BROKER, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    """One registered broker; `epoch` is the offset of its registration record."""

    id: int
    epoch: int
    endpoints: tuple[BrokerEndpoint, ...]
    rack: str | None
    fenced: bool
    incarnation_id: UUID
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """Those that take no new replicas (KIP-1066); None until the broker tells."""

    def endpoint(self, listener_name: str) -> BrokerEndpoint | None:
        """Where it is reached through a listener; None when it has no listener of this name."""
        return next((each for each in self.endpoints if each.name == listener_name), None)

    @property
    def is_cordoned(self) -> bool:
        """Whether all its log directories are cordoned: it receives no replicas."""
        return bool(self.log_dirs) and not {*self.log_dirs} - {*(self.cordoned_log_dirs or ())}

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImage:
    """One partition; `replicas` is the assignment (target + removing while it is reassigned)."""

    topic_id: UUID
    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0

    @property
    def preferred_leader(self) -> int:
        """The first replica of the assignment."""
        return self.replicas[0]

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment (KIP-455) is in flight."""
        return bool(self.adding_replicas or self.removing_replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    """One topic and its partitions by number."""

    name: str
    topic_id: UUID
    partitions: Mapping[int, PartitionImage]


ScramUser = tuple[ScramMechanism, str]
"""A mechanism and the name of a user who may log in by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    """Everything the metadata log says up to `offset` (inclusive; -1 before any record).

    `epoch` is the leader epoch of the record at `offset`; `controller_id` is the active
    controller as far as this node knows (None while there is none).
    """

    cluster_id: str
    offset: int = UNKNOWN_OFFSET
    epoch: int = 0
    controller_id: int | None = None
    brokers: Mapping[int, BrokerImage] = field(default_factory=_empty)
    topics: Mapping[str, TopicImage] = field(default_factory=_empty)
    topics_by_id: Mapping[UUID, TopicImage] = field(default_factory=_empty)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=_empty)
    features: Mapping[str, int] = field(default_factory=_empty)
    scram: Mapping[ScramUser, ScramCredential] = field(default_factory=_empty)
    acls: Acls = field(default_factory=_empty)
    quotas: Quotas = field(default_factory=_empty)
    next_producer_id: int = 0

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of a topic, or None when its id is unknown."""
        found = self.topics_by_id.get(topic_id)
        return None if found is None else found.name

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """The partition, or None when it or its topic is unknown."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def partition_by_id(self, topic_id: UUID, partition: int) -> PartitionImage | None:
        """The partition, or None when it or its topic id is unknown."""
        found = self.topics_by_id.get(topic_id)
        return None if found is None else found.partitions.get(partition)

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """The dynamic configs set on a resource, without any default."""
        return self.configs.get(resource, _EMPTY)

    def active_brokers(self) -> tuple[BrokerImage, ...]:
        """Brokers that may get replicas to lead, by id."""
        return tuple(b for _, b in sorted(self.brokers.items()) if b.is_active)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDelta:
    """Changes of one replayed batch between two images.

    `topics_changed` holds names of topics created or with a changed partition;
    `topics_deleted` the images of topics that are gone (a topic deleted and made again within
    one batch is in both). `partitions_changed` are (topic, partition) of the new image.
    """

    topics_changed: frozenset[str] = frozenset()
    topics_deleted: tuple[TopicImage, ...] = ()
    partitions_changed: frozenset[tuple[str, int]] = frozenset()
    brokers_changed: frozenset[int] = frozenset()
    configs_changed: frozenset[ConfigResource] = frozenset()
    controller_changed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing but the offset moved."""
        return not (
            self.topics_changed
            or self.topics_deleted
            or self.brokers_changed
            or self.configs_changed
            or self.controller_changed
        )
