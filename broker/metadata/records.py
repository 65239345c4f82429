"""Records of the metadata log: Kafka's own types, names, keys and bytes.

Each value is a frame (MetadataRecordSerde): frame version 1, record type and schema version as
unsigned varints, then the flexible-version body, so Kafka's DumpLogSegments with
--cluster-metadata-decoder reads our metadata log. Fields that we do not use are written with
their defaults and skipped when read.

RecordError
└── UnknownRecordError   a type or version that this build does not know
"""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

NO_LEADER_CHANGE: Final = -2
NIL: Final = UUID(int=0)
"""kio reads it as None."""


class RecordError(Exception):
    """A metadata record that cannot be read."""


class UnknownRecordError(RecordError):
    """A metadata record of a type or version unknown to this build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint:
    """A listener that a broker advertises."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature:
    """A feature and the range of levels that a broker supports."""

    name: str
    min_supported_version: int
    max_supported_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker process registered; its broker epoch is this record's offset."""

    broker_id: int
    incarnation_id: UUID
    broker_epoch: int
    endpoints: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """None until the broker tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord:
    """A broker left the cluster for good."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    """A broker was fenced (1), unfenced (-1), began its controlled shutdown (1), or cordoned other
    log directories than before (None: the same)."""

    broker_id: int
    broker_epoch: int
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A topic was created; its partitions follow in the same batch."""

    name: str
    topic_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """A topic, its partitions and its configs are gone."""

    topic_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition was created."""

    partition_id: int
    topic_id: UUID
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = -1
    leader_epoch: int = 0
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """Changes of a partition; None (for the leader: -2) leaves a field as it is.

    Replaying it raises the partition epoch by one, and the leader epoch by one when a leader is
    named, even the same one (PartitionRegistration.merge).
    """

    partition_id: int
    topic_id: UUID
    isr: tuple[int, ...] | None = None
    leader: int = NO_LEADER_CHANGE
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """A config was set, or with None removed."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord:
    """A user may log in by a SCRAM mechanism; the password itself is nowhere."""

    name: str
    mechanism: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord:
    """A user no longer logs in by a SCRAM mechanism."""

    name: str
    mechanism: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord:
    """Somebody may, or may not, do something."""

    id: UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord:
    """An entry is gone."""

    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntityPart:
    """One part of whom a quota binds: a type, and a name or None for the default."""

    entity_type: str
    entity_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord:
    """A quota was set, or removed."""

    entity: tuple[QuotaEntityPart, ...]
    key: str
    value: float = 0.0
    remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """Producer ids below `next_producer_id` are given away, the last block to this broker."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """A feature was finalised at a level (0 removes it)."""

    name: str
    feature_level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord:
    """Changes nothing; moves the offset."""


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | FeatureLevelRecord
    | NoOpRecord
)
