"""The group coordinator of one node: its parts, put together and kept going.

`membership` runs the groups, `offsets` keeps what they committed, `views` shows both; `runtime`
decides which of them this node answers for. Everything that must outlive the node
is a record in __consumer_offsets.
"""

import logging

from broker.background import Repeater, Tasks, log_failure
from broker.clock import Clock
from broker.coordinator.config import GroupConfig
from broker.coordinator.consumer.consumer_membership import ConsumerMembership
from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.group_coordinator_shard import GroupCoordinatorShard
from broker.coordinator.group_metadata_manager import GroupMetadataManager
from broker.coordinator.groups.describe_groups import GroupViews
from broker.coordinator.groups.membership import Membership
from broker.coordinator.offsets.offset_manager import OffsetManager
from broker.coordinator.partition_writer import PartitionWriter
from broker.metadata.image import ImageDelta, MetadataImage
from broker.metadata.metadata_service import MetadataService
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.replication.replica_manager import ReplicaManager

_LOG = logging.getLogger(__name__)


class GroupCoordinator:
    """Assembles the parts; `start` needs a running loop."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataService,
        clock: Clock,
        config: GroupConfig,
        *,
        node_id: int,
    ) -> None:
        self.config = config
        self._metadata = metadata
        self._clock = clock
        writer = PartitionWriter(
            OFFSETS_TOPIC,
            replicas,
            clock,
            codec=config.offsets_topic_codec,
            timeout_ms=config.offsets_commit_timeout_ms,
        )
        self.runtime = CoordinatorRuntime(
            OFFSETS_TOPIC,
            self._build_shard,
            replicas,
            metadata,
            node_id=node_id,
            load_buffer_bytes=config.offsets_load_buffer_bytes,
        )
        self.manager = GroupMetadataManager(
            self.runtime.locate, writer, clock, reload=self.runtime.reload
        )
        self.membership = Membership(self.runtime, self.manager, config)
        self.consumers = ConsumerMembership(
            self.runtime, self.manager, writer, metadata=metadata, clock=clock, config=config
        )
        self.offsets = OffsetManager(self.runtime, self.manager, writer, config)
        self.views = GroupViews(self.runtime, metadata)
        interval_ms = config.offsets_retention_check_interval_ms
        self._expiry = Repeater("expiry of offsets", interval_ms, self._expire)
        self._chores = Tasks("group coordinator", log_failure)

    def start(self) -> None:
        """Follow the metadata, load what this node leads, expire offsets from time to time."""
        self._metadata.subscribe(self._handle_metadata)
        self.runtime.start()
        self._expiry.start()

    async def stop(self) -> None:
        """Answer everybody who waits, then end all background work."""
        self._expiry.stop()
        await self.runtime.stop()
        await self._chores.stop()
        await self.manager.stop()

    def _build_shard(self, index: int) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            index,
            self._clock,
            self.config,
            loaded=self.manager.handle_loaded,
            unloaded=self.manager.handle_unloaded,
        )

    def _handle_metadata(
        self, _old: MetadataImage, new: MetadataImage, changed: ImageDelta
    ) -> None:
        if changed.topics_changed or changed.topics_deleted:
            self.consumers.topics_changed()
        gone = frozenset(topic.name for topic in changed.topics_deleted)
        gone = frozenset(name for name in gone if name not in new.topics)
        if gone:
            self._chores.start(self.offsets.forget_topics(gone))

    def _expire(self) -> None:
        self._chores.start(self.offsets.expire(self._clock))
