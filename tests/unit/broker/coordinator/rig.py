"""A coordinator over a log in memory, with one group and one member at hand."""

from typing import cast

from broker.clock import Clock
from broker.coordinator.config import GroupConfig
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.group_coordinator import GroupCoordinator
from broker.coordinator.groups.group_events import (
    GroupProtocol,
    HeartbeatReceived,
    JoinRequested,
    JoinResult,
    LeaveRequested,
    MemberIdentity,
    SyncRequested,
)
from broker.coordinator.offsets.offset_manager import CommitRequested
from broker.coordinator.records import CommittedOffset
from broker.replication.replica_manager import ReplicaManager
from tests.unit.broker.coordinator.memory import (
    NODE_ID,
    ManualClock,
    MemoryMetadata,
    MemoryPartition,
    MemoryReplicas,
    until,
)

# ConsumerProtocolSubscription v0 of topic "t"; ConsumerProtocolAssignment v0 of t-0.
SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 ffffffff")
ASSIGNMENT = bytes.fromhex("0000 00000001 0001 74 00000001 00000000 ffffffff")
SOON = GroupConfig(initial_rebalance_delay_ms=0, min_session_timeout_ms=10)


class Rig:
    """A coordinator over memory; `restart` makes a new one over the same log."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.config = SOON
        self.replicas = MemoryReplicas({p: MemoryPartition() for p in range(4)})
        self.metadata = MemoryMetadata()
        self.hands = ManualClock()
        self.clock = clock or self.hands
        self.groups = self._new()

    def _new(self) -> GroupCoordinator:
        replicas = cast("ReplicaManager", self.replicas)
        return GroupCoordinator(replicas, self.metadata, self.clock, self.config, node_id=NODE_ID)

    async def restart(self) -> None:
        await self.groups.stop()
        self.metadata._callbacks.clear()
        self.groups = self._new()
        await self.start()

    async def start(self) -> None:
        self.groups.start()
        await until(lambda: not self.groups.runtime.is_loading)

    async def join(
        self, new_member_id: str = "m1", *, session_timeout_ms: int = 10_000
    ) -> JoinResult:
        return await self.groups.membership.join(
            "g",
            JoinRequested(
                token=self.groups.manager.take_token(),
                now_ms=self.clock.monotonic_ms(),
                member_id="",
                new_member_id=new_member_id,
                client_id="c",
                client_host="/h",
                session_timeout_ms=session_timeout_ms,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=(GroupProtocol(name="range", metadata=SUBSCRIPTION),),
                requires_known_member_id=False,
            ),
        )

    async def settle(self) -> None:
        """A member m1 that owns t-0, in generation 1."""
        assert (await self.join()).error is CoordinatorError.NONE
        synced = await self.groups.membership.sync(
            "g",
            SyncRequested(
                token=self.groups.manager.take_token(),
                now_ms=self.clock.monotonic_ms(),
                member_id="m1",
                generation_id=1,
                assignments=(("m1", ASSIGNMENT),),
            ),
        )
        assert (synced.error, synced.assignment) == (CoordinatorError.NONE, ASSIGNMENT)

    def heartbeat(self, member_id: str = "m1") -> CoordinatorError:
        event = HeartbeatReceived(
            token=self.groups.manager.take_token(),
            now_ms=self.clock.monotonic_ms(),
            member_id=member_id,
            generation_id=1,
        )
        return self.groups.membership.heartbeat("g", event).error

    def leave(self) -> None:
        event = LeaveRequested(
            token=self.groups.manager.take_token(),
            now_ms=self.clock.monotonic_ms(),
            members=(MemberIdentity(member_id="m1"),),
        )
        self.groups.membership.leave("g", event)

    async def commit(
        self,
        offset: int,
        *,
        topic: str = "t",
        member_id: str = "",
        generation_id: int = -1,
        metadata: str = "",
    ) -> CoordinatorError:
        committed = CommittedOffset(
            offset=offset, leader_epoch=3, metadata=metadata, commit_ms=self.clock.wall_ms()
        )
        verdicts = await self.groups.offsets.commit(
            CommitRequested(
                group_id="g",
                member_id=member_id,
                group_instance_id=None,
                generation_id=generation_id,
                offsets={(topic, 0): committed},
            )
        )
        return verdicts[(topic, 0)]

    def committed(self, topic: str = "t") -> CommittedOffset | None:
        return self.groups.offsets.fetch("g", [(topic, 0)]).offsets.get((topic, 0))
