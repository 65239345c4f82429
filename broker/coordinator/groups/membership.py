"""Join, sync, heartbeat and leave, as the coordinator offers them to the handlers."""

from broker.coordinator.config import GroupConfig
from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.group_coordinator_shard import GroupCoordinatorShard
from broker.coordinator.group_metadata_manager import GroupMetadataManager, LocatedGroup
from broker.coordinator.groups.group_events import (
    HeartbeatReceived,
    HeartbeatResult,
    JoinRequested,
    JoinResult,
    LeaveRequested,
    LeaveResult,
    SyncRequested,
    SyncResult,
)


class Membership:
    """Join, sync, heartbeat and leave of every group that this node coordinates."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupCoordinatorShard],
        manager: GroupMetadataManager,
        config: GroupConfig,
    ) -> None:
        self._runtime = runtime
        self._manager = manager
        self._config = config

    async def join(self, group_id: str, event: JoinRequested) -> JoinResult:
        """JoinGroup: may take as long as the group's rebalance."""
        refused = self._refuse_join(group_id, event)
        if refused is not CoordinatorError.NONE:
            return JoinResult(error=refused, member_id=event.member_id)
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return JoinResult(error=shard, member_id=event.member_id)
        if group_id not in shard.entries and event.member_id:
            return JoinResult(error=CoordinatorError.UNKNOWN_MEMBER_ID, member_id=event.member_id)
        located = LocatedGroup(shard=shard, entry=shard.create_entry(group_id))
        if isinstance(located.entry.group, ConsumerGroup) and not self._is_given_back(located):
            error = CoordinatorError.INCONSISTENT_GROUP_PROTOCOL
            return JoinResult(error=error, member_id=event.member_id)
        answered: JoinResult = await self._manager.ask(located, event.token, event)
        return answered

    def _is_given_back(self, located: LocatedGroup) -> bool:
        """Whether a group of the consumer protocol has no members: it becomes a classic one."""
        shard, entry, group = located.shard, located.entry, located.entry.group
        assert isinstance(group, ConsumerGroup)
        if group.members:
            return False
        group.records += group.tombstones()
        self._manager.write_consumer_group(located)
        del shard.entries[group.group_id]
        entry.group = shard.create_entry(group.group_id).group
        shard.entries[group.group_id] = entry
        return True

    def _refuse_join(self, group_id: str, event: JoinRequested) -> CoordinatorError:
        if not group_id:
            return CoordinatorError.INVALID_GROUP_ID
        low, high = self._config.min_session_timeout_ms, self._config.max_session_timeout_ms
        is_allowed = low <= event.session_timeout_ms <= high
        return CoordinatorError.NONE if is_allowed else CoordinatorError.INVALID_SESSION_TIMEOUT

    async def sync(self, group_id: str, event: SyncRequested) -> SyncResult:
        """SyncGroup: waits for the leader's assignment to be stored."""
        located = self._find(group_id)
        if isinstance(located, CoordinatorError):
            return SyncResult(error=located)
        answered: SyncResult = await self._manager.ask(located, event.token, event)
        return answered

    def heartbeat(self, group_id: str, event: HeartbeatReceived) -> HeartbeatResult:
        """Heartbeat: answered at once."""
        located = self._find(group_id)
        if isinstance(located, CoordinatorError):
            is_loading = located is CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS
            # Kafka's rule: a member need not do anything while its group is being read.
            return HeartbeatResult(error=CoordinatorError.NONE if is_loading else located)
        answered: HeartbeatResult = self._manager.ask_now(located, event.token, event)
        return answered

    def leave(self, group_id: str, event: LeaveRequested) -> LeaveResult:
        """LeaveGroup: answered at once."""
        located = self._find(group_id)
        if located is CoordinatorError.UNKNOWN_MEMBER_ID:
            return LeaveResult(members=tuple((identity, located) for identity in event.members))
        if isinstance(located, CoordinatorError):
            return LeaveResult(error=located)
        answered: LeaveResult = self._manager.ask_now(located, event.token, event)
        return answered

    def _find(self, group_id: str) -> LocatedGroup | CoordinatorError:
        if not group_id:
            return CoordinatorError.INVALID_GROUP_ID
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return shard
        entry = shard.entries.get(group_id)
        if entry is None or isinstance(entry.group, ConsumerGroup):
            return CoordinatorError.UNKNOWN_MEMBER_ID
        return LocatedGroup(shard=shard, entry=entry)
