"""Following the metadata image: which replicas live here, in which role, with which configs.

Nothing is touched before `start`: an image that is still being replayed may name a topic of the
past, and acting on it would delete the data of its successor. What is here already follows an
image at once; of many new replicas each comes as the image says when its files are made.
"""

import logging
from collections.abc import Mapping
from typing import Final

from broker.clock import Clock
from broker.log.config import LogConfig
from broker.log.errors import LogError
from broker.log.log_manager import LogManager
from broker.metadata.image import (
    ImageDelta,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from broker.metadata.metadata_service import MetadataService
from broker.metadata.topic_names import METADATA_TOPIC
from broker.replication.follower.replica_fetcher_manager import ReplicaFetcherManager
from broker.replication.partition.events import (
    AssignmentChanged,
    EligibleReplicasChanged,
    MinInsyncReplicasChanged,
)
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects
from broker.replication.partition.partition_state import PartitionState
from broker.replication.ports import ConfigPort
from broker.replication.replica_changes import ReplicaChanges
from broker.replication.replica_creation import ReplicaCreation
from broker.replication.throttle import ByteBucket, is_throttled, throttled_rate

log = logging.getLogger(__name__)

ALL_BROKERS: Final = ""
_NO_TOPIC: Final = ""


class MetadataPublisher:
    """Turns images into partitions, logs, roles, throttles."""

    def __init__(
        self,
        *,
        node_id: int,
        lag_time_ms_max: int,
        clock: Clock,
        logs: LogManager,
        replicas: PartitionEffects,
        fetchers: ReplicaFetcherManager,
        metadata: MetadataService,
        configs: ConfigPort,
        throttles: tuple[ByteBucket, ByteBucket],
    ) -> None:
        self._node_id = node_id
        self._lag_time_ms_max = lag_time_ms_max
        self._clock = clock
        self._logs = logs
        self._replicas = replicas
        self._fetchers = fetchers
        self._metadata = metadata
        self._configs = configs
        self._leader_throttle, self._follower_throttle = throttles
        self._checkpointed = logs.high_watermark_checkpoint()
        self._topic_defaults: Mapping[str, str] = {}
        """Configs of a topic that sets nothing itself."""
        self._creation = ReplicaCreation(
            node_id=node_id,
            logs=logs,
            metadata=metadata,
            take_in=self._apply_guarded,
        )
        self._changes = ReplicaChanges("changes of replicas", self._follow_image)
        self._eligibility = ReplicaChanges("eligibility of replicas", self._apply_eligible)
        self._eligible_epochs: Mapping[int, int] = {}
        self._is_started = False
        metadata.subscribe(self._metadata_changed)

    def start(self) -> None:
        """The image has caught up with the cluster: take it whole, and every change from now on."""
        self._is_started = True
        image = self._metadata.image
        self._fetchers.brokers_changed(image.brokers)
        self._eligible_epochs = _epochs(image)
        self._apply_broker_configs()
        self._topic_defaults = self._configs.topic(_NO_TOPIC)
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                self._apply_guarded(partition)
        self._delete_strays(image)

    async def close(self) -> None:
        """Nothing is taken in, changed or removed any more."""
        await self._creation.close()
        await self._changes.close()
        await self._eligibility.close()

    def _metadata_changed(
        self, old: MetadataImage, new: MetadataImage, changed: ImageDelta
    ) -> None:
        if not self._is_started:
            return
        if changed.brokers_changed:
            self._apply_brokers(new)
        if changed.configs_changed:
            self._apply_configs(new, changed)
        here = [
            (topic.name, number)
            for topic in changed.topics_deleted
            for number in topic.partitions
            if (topic.name, number) in self._replicas.by_name
        ]
        missing = []
        for key in changed.partitions_changed:
            if key in self._replicas.by_name:
                here.append(key)
            elif self._node_id in new.topics[key[0]].partitions[key[1]].replicas:
                missing.append(key)
        self._changes.add(here)
        self._creation.add(missing)

    # Partitions --------------------------------------------------------------------------

    def _follow_image(self, key: tuple[str, int]) -> None:
        """Bring a replica that is here in line with the newest image."""
        image, found = self._metadata.image, self._replicas.by_name.get(key)
        view = image.partition(*key)
        if view is not None:
            self._apply_guarded(view)
        else:
            self._remove(found)

    def _apply_guarded(self, view: PartitionImage) -> None:
        """A disk that refuses one partition must not end the others."""
        try:
            self._apply(view)
        except LogError as error:
            log.error("%s-%d is offline here: %s", view.topic, view.partition, error)

    def _apply(self, view: PartitionImage) -> None:
        found = self._replicas.by_name.get((view.topic, view.partition))
        if found is not None and found.topic_id != view.topic_id:
            self._remove(found)
            found = None
        if self._node_id not in view.replicas:
            self._remove(found)
            return
        if found is None:
            found = self._open(view)
        event = AssignmentChanged(
            leader=view.leader,
            leader_epoch=view.leader_epoch,
            partition_epoch=view.partition_epoch,
            replicas=view.replicas,
            isr=view.isr,
            now_ms=self._clock.monotonic_ms(),
        )
        self._replicas.apply(found, event)

    def _open(self, view: PartitionImage) -> Partition:
        key = (view.topic, view.partition)
        existing = self._logs.log(*key)
        if existing is not None and existing.topic_id.int not in (0, view.topic_id.int):
            log.warning("%s-%d on disk is of an earlier topic: deleting it", *key)
            self._logs.delete_log(*key)
        configs = self._configs.topic(view.topic)
        log_config = LogConfig.from_properties(configs)
        opened = self._logs.create_log(*key, view.topic_id, log_config)
        state = PartitionState(
            node_id=self._node_id,
            log_end_offset=opened.log_end_offset,
            log_start_offset=opened.log_start_offset,
            high_watermark=self._checkpointed.get(key, 0) if existing is not None else 0,
            lag_time_ms_max=self._lag_time_ms_max,
        )
        partition = Partition(opened, state)
        self._replicas.add(partition)
        self._apply_topic_config(partition, configs, log_config)
        self._replicas.apply(partition, self._eligible())
        return partition

    def _remove(self, partition: Partition | None) -> None:
        if partition is None:
            return
        log.info("%s-%d leaves this broker", partition.topic, partition.partition)
        self._replicas.remove(partition)
        self._checkpointed.pop((partition.topic, partition.partition), None)
        try:
            self._logs.delete_log(partition.topic, partition.partition)
        except LogError as error:
            log.error("%s-%d: its log stays: %s", partition.topic, partition.partition, error)

    def _delete_strays(self, image: MetadataImage) -> None:
        """Logs of topics that were deleted, or moved away, while this broker was down."""
        for stray in self._logs.all_logs:
            key = (stray.topic, stray.partition)
            if stray.topic == METADATA_TOPIC or key in self._replicas.by_name:
                continue
            topic = image.topics.get(stray.topic)
            view = None if topic is None else topic.partitions.get(stray.partition)
            if view is not None and self._node_id in view.replicas:
                continue  # it could not be opened just now
            log.warning("%s-%d does not belong here any more: deleting it", *key)
            try:
                self._logs.delete_log(*key)
            except LogError as error:
                log.error("%s-%d: its log stays: %s", *key, error)

    # Brokers and configs -----------------------------------------------------------------

    def _eligible(self) -> EligibleReplicasChanged:
        return EligibleReplicasChanged(
            broker_epochs=self._eligible_epochs, now_ms=self._clock.monotonic_ms()
        )

    def _apply_brokers(self, image: MetadataImage) -> None:
        self._fetchers.brokers_changed(image.brokers)
        self._eligible_epochs = _epochs(image)
        self._eligibility.add(self._replicas.by_name)

    def _apply_eligible(self, key: tuple[str, int]) -> None:
        partition = self._replicas.by_name.get(key)
        if partition is not None:
            self._replicas.apply(partition, self._eligible())

    def _apply_configs(self, image: MetadataImage, changed: ImageDelta) -> None:
        """A broker's config may stand behind those of all topics; a throttle's rate does not, and
        must not hold up what this node serves by looking at every replica."""
        topics = {r.name for r in changed.configs_changed if r.type == ResourceType.TOPIC}
        brokers = {r.name for r in changed.configs_changed if r.type == ResourceType.BROKER}
        if brokers & {str(self._node_id), ALL_BROKERS}:
            self._apply_broker_configs()
            defaults = self._configs.topic(_NO_TOPIC)
            if defaults != self._topic_defaults:
                self._topic_defaults = defaults
                topics = {partition.topic for partition in self._replicas.partitions()}
        released = [self._apply_topic_configs(image.topics.get(topic)) for topic in topics]
        if any(released):
            self._fetchers.throttle_changed()

    def _apply_topic_configs(self, topic: TopicImage | None) -> bool:
        """Applies configs; answers whether a replica here has left its throttle."""
        if topic is None:
            return False
        is_released = False
        configs = self._configs.topic(topic.name)
        try:
            log_config = LogConfig.from_properties(configs)
        except LogError as error:
            log.error("%s: its config has no effect: %s", topic.name, error)
            return False
        for number in topic.partitions:
            partition = self._replicas.by_name.get((topic.name, number))
            if partition is None:
                continue
            was_throttled = partition.is_follower_throttled
            try:
                self._apply_topic_config(partition, configs, log_config)
            except LogError as error:
                log.error("%s-%d: its config has no effect: %s", topic.name, number, error)
            is_released |= was_throttled and not partition.is_follower_throttled
        return is_released

    def _apply_topic_config(
        self, partition: Partition, configs: Mapping[str, str], log_config: LogConfig
    ) -> None:
        partition.log.config = log_config
        leaders = configs.get("leader.replication.throttled.replicas", "")
        followers = configs.get("follower.replication.throttled.replicas", "")
        number = partition.partition
        partition.is_leader_throttled = is_throttled(leaders, number, self._node_id)
        partition.is_follower_throttled = is_throttled(followers, number, self._node_id)
        event = MinInsyncReplicasChanged(
            min_insync_replicas=int(configs.get("min.insync.replicas") or 1),
            now_ms=self._clock.monotonic_ms(),
        )
        self._replicas.apply(partition, event)

    def _apply_broker_configs(self) -> None:
        configs = self._configs.broker()
        now_ms = self._clock.monotonic_ms()
        if expiration := configs.get("producer.id.expiration.ms"):
            self._logs.producer_id_expiration_ms = int(expiration)
        leader = throttled_rate(configs, "leader.replication.throttled.rate")
        follower = throttled_rate(configs, "follower.replication.throttled.rate")
        self._leader_throttle.set_rate(leader, now_ms)
        if follower != self._follower_throttle.rate:
            self._follower_throttle.set_rate(follower, now_ms)
            self._fetchers.throttle_changed()


def _epochs(image: MetadataImage) -> Mapping[int, int]:
    """Epochs of the brokers that may be in sync."""
    return {id_: broker.epoch for id_, broker in image.brokers.items() if broker.is_active}
