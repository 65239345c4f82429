"""Changes collected over one image, and the next image they make.

Applying N records that touch T topics copies the top-level maps once and each touched topic
once, so it costs O(N + T), never O(N * T). broker.metadata.replay says what each record does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar
from uuid import UUID

from broker.metadata.acls import Acl
from broker.metadata.image import (
    BrokerImage,
    ConfigResource,
    ImageDelta,
    MetadataImage,
    PartitionImage,
    ScramUser,
    TopicImage,
)
from broker.metadata.quotas import QuotaEntity
from broker.protocol.scram import ScramCredential

K = TypeVar("K")
V = TypeVar("V")


class ReplayError(Exception):
    """A record that does not fit the image it is replayed on: the log and the code disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedBatch:
    """The image after a batch and what the batch changed."""

    image: MetadataImage
    changed: ImageDelta


class MetadataDelta:
    """Changes over one image; not thread-safe; `build` ends it."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._brokers: dict[int, BrokerImage | None] = {}
        self._created: dict[UUID, TopicImage] = {}
        self._partitions: dict[UUID, dict[int, PartitionImage]] = {}
        self._deleted: dict[UUID, TopicImage] = {}
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self.features: dict[str, int | None] = {}
        self._acls: dict[UUID, Acl | None] = {}
        self._quotas: dict[QuotaEntity, dict[str, float]] = {}
        self._scram: dict[ScramUser, ScramCredential | None] = {}
        self.next_producer_id = image.next_producer_id

    def broker(self, broker_id: int, epoch: int) -> BrokerImage:
        """The broker registered under this very epoch."""
        found = self._brokers.get(broker_id, self._image.brokers.get(broker_id))
        if found is None or found.epoch != epoch:
            raise ReplayError(f"record for broker {broker_id} epoch {epoch}; it is {found}")
        return found

    def put_broker(self, broker_id: int, broker: BrokerImage | None) -> None:
        """Set a broker, or with None remove it."""
        self._brokers[broker_id] = broker

    def topic(self, topic_id: UUID) -> TopicImage:
        """The topic as of the image (its partitions may have changed since)."""
        topic = self._created.get(topic_id) or self._image.topics_by_id.get(topic_id)
        if topic is None or topic_id in self._deleted:
            raise ReplayError(f"record for topic id {topic_id}, which does not exist")
        return topic

    def create_topic(self, topic: TopicImage) -> None:
        """Add a topic whose name and id must be free."""
        current = self._image.topics.get(topic.name)
        if current is not None and current.topic_id not in self._deleted:
            raise ReplayError(f"topic {topic.name} is created, but exists")
        if topic.topic_id in self._created or topic.topic_id in self._image.topics_by_id:
            raise ReplayError(f"topic {topic.name} is created with the id of another")
        self._created[topic.topic_id] = topic

    def remove_topic(self, topic_id: UUID) -> TopicImage:
        """Remove a topic with its partitions; returns what it was."""
        topic = self.topic(topic_id)
        self._partitions.pop(topic_id, None)
        if self._created.pop(topic_id, None) is None:
            self._deleted[topic_id] = topic
        return topic

    def partition(self, topic_id: UUID, partition: int) -> PartitionImage:
        """The partition as changed so far."""
        topic = self.topic(topic_id)
        found = self._partitions.get(topic_id, {}).get(partition) or topic.partitions.get(partition)
        if found is None:
            raise ReplayError(f"record for {topic.name}-{partition}, which does not exist")
        return found

    def put_partition(self, partition: PartitionImage) -> None:
        """Create or replace a partition of an existing topic."""
        self._partitions.setdefault(partition.topic_id, {})[partition.partition] = partition

    def config(self, resource: ConfigResource) -> dict[str, str]:
        """The resource's configs, to be changed in place."""
        if resource not in self._configs:
            self._configs[resource] = dict(self._image.config(resource))
        return self._configs[resource]

    def put_scram(self, user: ScramUser, credential: ScramCredential | None) -> None:
        """Set a user's credential, or with None remove it, which must be there."""
        known = self._scram.get(user, self._image.scram.get(user))
        if credential is None and known is None:
            raise ReplayError(f"{user[0].label} of {user[1]} is removed, but does not exist")
        self._scram[user] = credential

    def put_acl(self, id_: UUID, acl: Acl | None) -> None:
        """Set an entry, or with None remove it, which must be there."""
        if acl is None and self._acls.get(id_, self._image.acls.get(id_)) is None:
            raise ReplayError(f"the access control entry {id_} is removed, but does not exist")
        self._acls[id_] = acl

    def quotas(self, entity: QuotaEntity) -> dict[str, float]:
        """The entity's quotas, to be changed in place."""
        if entity not in self._quotas:
            self._quotas[entity] = dict(self._image.quotas.get(entity, {}))
        return self._quotas[entity]

    def build(self, *, offset: int, epoch: int) -> ReplayedBatch:
        """The next image and the summary of what changed."""
        topics, topics_by_id = self._build_topics()
        configs = {k: MappingProxyType(v) if v else None for k, v in self._configs.items()}
        quotas = {k: MappingProxyType(v) if v else None for k, v in self._quotas.items()}
        image = replace(
            self._image,
            offset=offset,
            epoch=epoch,
            brokers=_merged(self._image.brokers, self._brokers),
            topics=topics,
            topics_by_id=topics_by_id,
            configs=_merged(self._image.configs, configs),
            features=_merged(self._image.features, self.features),
            quotas=_merged(self._image.quotas, quotas),
            acls=_merged(self._image.acls, self._acls),
            scram=_merged(self._image.scram, self._scram),
            next_producer_id=self.next_producer_id,
        )
        return ReplayedBatch(image=image, changed=self._summary())

    def _summary(self) -> ImageDelta:
        names = {self.topic(topic_id).name for topic_id in (*self._created, *self._partitions)}
        return ImageDelta(
            topics_changed=frozenset(names),
            topics_deleted=tuple(self._deleted.values()),
            partitions_changed=frozenset(
                (partition.topic, number)
                for partitions in self._partitions.values()
                for number, partition in partitions.items()
            ),
            brokers_changed=frozenset(self._brokers),
            configs_changed=frozenset(self._configs),
        )

    def _build_topics(self) -> tuple[Mapping[str, TopicImage], Mapping[UUID, TopicImage]]:
        by_name: dict[str, TopicImage | None] = {t.name: None for t in self._deleted.values()}
        by_id: dict[UUID, TopicImage | None] = dict.fromkeys(self._deleted)
        for topic_id in {**self._created, **self._partitions}:
            topic = self._build_topic(topic_id)
            by_name[topic.name] = topic
            by_id[topic_id] = topic
        return (
            _merged(self._image.topics, by_name),
            _merged(self._image.topics_by_id, by_id),
        )

    def _build_topic(self, topic_id: UUID) -> TopicImage:
        topic = self.topic(topic_id)
        changed = self._partitions.get(topic_id)
        if not changed:
            return topic
        return replace(topic, partitions=MappingProxyType({**topic.partitions, **changed}))


def _merged(base: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """`base` with keys replaced, or removed where the change is None; `base` when unchanged."""
    if not changes:
        return base
    merged = dict(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return MappingProxyType(merged)
