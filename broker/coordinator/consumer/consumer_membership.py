"""Heartbeats of the consumer protocol, as the coordinator offers them to the handlers."""

from collections.abc import Callable
from typing import Final

from broker.clock import Clock
from broker.coordinator.config import GroupConfig
from broker.coordinator.consumer.assignors import ASSIGNORS
from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.consumer.consumer_heartbeat import (
    ConsumerHeartbeat,
    HeartbeatAnswer,
    HeartbeatContext,
    heartbeat,
)
from broker.coordinator.consumer.consumer_member import LEAVE_STATIC_EPOCH
from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.group_coordinator_shard import GroupCoordinatorShard
from broker.coordinator.group_metadata_manager import GroupMetadataManager, LocatedGroup
from broker.coordinator.groups.group_state import ClassicGroup, GroupState
from broker.coordinator.offsets.committed_offsets import AnyGroup
from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.records import encode_group_key
from broker.metadata.metadata_service import MetadataService

NAME_BYTES_MAX: Final = 32_767
"""Records of __consumer_offsets hold no longer ones."""
_INVALID: Final = CoordinatorError.INVALID_REQUEST


class ConsumerMembership:
    """Members of every group of the consumer protocol that this node coordinates."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupCoordinatorShard],
        manager: GroupMetadataManager,
        writer: PartitionWriter,
        *,
        metadata: MetadataService,
        clock: Clock,
        config: GroupConfig,
    ) -> None:
        self._runtime = runtime
        self._manager = manager
        self._writer = writer
        self._metadata = metadata
        self._clock = clock
        self._config = config

    async def heartbeat(
        self,
        group_id: str,
        asked: ConsumerHeartbeat,
        resolve: Callable[[str], frozenset[str]],
    ) -> HeartbeatAnswer:
        """ConsumerGroupHeartbeat: answered once what it changed is durable. `resolve` tells the
        topics that a regular expression names."""
        if reason := why_invalid(group_id, asked):
            return HeartbeatAnswer(error=_INVALID, reason=reason)
        if asked.assignor is not None and asked.assignor not in ASSIGNORS:
            known = ", ".join(ASSIGNORS)
            reason = (
                f"ServerAssignor {asked.assignor} is not supported. Supported assignors: {known}."
            )
            return HeartbeatAnswer(error=CoordinatorError.UNSUPPORTED_ASSIGNOR, reason=reason)
        located = self._locate(group_id, asked)
        if isinstance(located, HeartbeatAnswer):
            return located
        image, group = self._metadata.image, located.entry.group
        assert isinstance(group, ConsumerGroup)
        context = HeartbeatContext(
            topics=image.topics,
            now_ms=self._clock.monotonic_ms(),
            wall_ms=self._clock.wall_ms(),
            metadata_offset=image.offset,
            size_max=self._config.consumer_max_size,
            resolve=resolve,
        )
        try:
            answer = heartbeat(group, asked, context)
        except Exception:
            self._runtime.reload(located.shard.index)  # the group may have changed by half
            raise
        writing = self._manager.write_consumer_group(located)
        if writing is not None and answer.error is CoordinatorError.NONE:
            error = await writing
            if error is not CoordinatorError.NONE:
                return HeartbeatAnswer(error=error)
        return answer

    def topics_changed(self) -> None:
        """Topics came, went or got partitions: each group looks at its own with the next
        heartbeat."""
        for shard in self._runtime.loaded():
            for entry in shard.entries.values():
                if isinstance(entry.group, ConsumerGroup):
                    entry.group.is_stale = True

    def _locate(self, group_id: str, asked: ConsumerHeartbeat) -> LocatedGroup | HeartbeatAnswer:
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return HeartbeatAnswer(error=shard)
        if not self._writer.can_append(shard.index):
            return HeartbeatAnswer(error=CoordinatorError.COORDINATOR_NOT_AVAILABLE)
        entry = shard.entries.get(group_id)
        if asked.epoch == 0 and (entry is None or _is_idle(entry.group)):
            entry = shard.create_entry(group_id)
            entry.group = self._founded(entry.group)
        if entry is None:
            return _not_found(f"Group {group_id} not found.")
        if isinstance(entry.group, ClassicGroup):
            return _not_found(f"Group {group_id} is not a consumer group.")
        return LocatedGroup(shard=shard, entry=entry)

    def _founded(self, classic: AnyGroup) -> ConsumerGroup:
        """In place of a classic group without members, whose offsets stay."""
        assert isinstance(classic, ClassicGroup)
        group = ConsumerGroup(
            group_id=classic.group_id, session_timeout_ms=self._config.consumer_session_timeout_ms
        )
        if classic.protocol_type or classic.generation_id:
            group.records.append((encode_group_key(classic.group_id), None))
        return group


def _is_idle(group: AnyGroup) -> bool:
    """Whether it is a classic group that nobody uses."""
    if not isinstance(group, ClassicGroup):
        return False
    return group.state is GroupState.EMPTY and not group.roster.pending


def _not_found(reason: str) -> HeartbeatAnswer:
    return HeartbeatAnswer(error=CoordinatorError.GROUP_ID_NOT_FOUND, reason=reason)


def why_invalid(group_id: str, asked: ConsumerHeartbeat) -> str:
    """Why a request makes no sense, in Kafka's words; empty where it does."""
    if not group_id.strip():
        return "GroupId can't be empty."
    if not asked.member_id.strip():
        return "MemberId can't be empty."
    for name, text in (("InstanceId", asked.instance_id), ("RackId", asked.rack_id)):
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    names = (group_id, asked.member_id, asked.instance_id, asked.rack_id, asked.regex)
    if any(len((it or "").encode()) > NAME_BYTES_MAX for it in (*names, *(asked.topics or ()))):
        return f"A name is longer than {NAME_BYTES_MAX} bytes."
    if asked.epoch == LEAVE_STATIC_EPOCH and asked.instance_id is None:
        return "InstanceId can't be null."
    if asked.epoch < LEAVE_STATIC_EPOCH:
        return "MemberEpoch is invalid."
    return _why_no_join(asked) if asked.epoch == 0 else ""


def _why_no_join(asked: ConsumerHeartbeat) -> str:
    if asked.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if asked.owned is None or asked.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if not asked.topics and not asked.regex:
        words = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
        return f"{words}(re-)joining."
    return ""
