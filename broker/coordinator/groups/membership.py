"""Join, sync, heartbeat and leave, as the coordinator offers them to the handlers."""

from broker.coordinator.config import GroupConfig
from broker.coordinator.coordinator_runtime import CoordinatorRuntime, LocatedGroup
from broker.coordinator.errors import GroupError
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
from broker.coordinator.offsets_partitions import OffsetsPartitions


class Membership:
    """Join, sync, heartbeat and leave of every group that this node coordinates."""

    def __init__(
        self, partitions: OffsetsPartitions, engine: CoordinatorRuntime, config: GroupConfig
    ) -> None:
        self._partitions = partitions
        self._engine = engine
        self._config = config

    async def join(self, group_id: str, event: JoinRequested) -> JoinResult:
        """JoinGroup: may take as long as the group's rebalance."""
        refused = self._refuse_join(group_id, event)
        if refused is not GroupError.NONE:
            return JoinResult(error=refused, member_id=event.member_id)
        partition = self._partitions.locate(group_id)
        if isinstance(partition, GroupError):
            return JoinResult(error=partition, member_id=event.member_id)
        if group_id not in partition.entries and event.member_id:
            return JoinResult(error=GroupError.UNKNOWN_MEMBER_ID, member_id=event.member_id)
        seat = LocatedGroup(
            partition=partition, entry=self._partitions.create_entry(partition, group_id)
        )
        answered: JoinResult = await self._engine.ask(seat, event.token, event)
        return answered

    def _refuse_join(self, group_id: str, event: JoinRequested) -> GroupError:
        if not group_id:
            return GroupError.INVALID_GROUP_ID
        low, high = self._config.min_session_timeout_ms, self._config.max_session_timeout_ms
        is_allowed = low <= event.session_timeout_ms <= high
        return GroupError.NONE if is_allowed else GroupError.INVALID_SESSION_TIMEOUT

    async def sync(self, group_id: str, event: SyncRequested) -> SyncResult:
        """SyncGroup: waits for the leader's assignment to be stored."""
        seat = self._find(group_id)
        if isinstance(seat, GroupError):
            return SyncResult(error=seat)
        answered: SyncResult = await self._engine.ask(seat, event.token, event)
        return answered

    def heartbeat(self, group_id: str, event: HeartbeatReceived) -> HeartbeatResult:
        """Heartbeat: answered at once."""
        seat = self._find(group_id)
        if isinstance(seat, GroupError):
            is_loading = seat is GroupError.COORDINATOR_LOAD_IN_PROGRESS
            # Kafka's rule: a member need not do anything while its group is being read.
            return HeartbeatResult(error=GroupError.NONE if is_loading else seat)
        answered: HeartbeatResult = self._engine.ask_now(seat, event.token, event)
        return answered

    def leave(self, group_id: str, event: LeaveRequested) -> LeaveResult:
        """LeaveGroup: answered at once."""
        seat = self._find(group_id)
        if seat is GroupError.UNKNOWN_MEMBER_ID:
            return LeaveResult(members=tuple((identity, seat) for identity in event.members))
        if isinstance(seat, GroupError):
            return LeaveResult(error=seat)
        answered: LeaveResult = self._engine.ask_now(seat, event.token, event)
        return answered

    def _find(self, group_id: str) -> LocatedGroup | GroupError:
        if not group_id:
            return GroupError.INVALID_GROUP_ID
        partition = self._partitions.locate(group_id)
        if isinstance(partition, GroupError):
            return partition
        entry = partition.entries.get(group_id)
        if entry is None:
            return GroupError.UNKNOWN_MEMBER_ID
        return LocatedGroup(partition=partition, entry=entry)
