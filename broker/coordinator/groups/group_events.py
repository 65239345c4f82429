"""Events of a group, and the effects that the shell must carry out.

Every event carries `now_ms`, a clock that never goes back; a `token` names the request that waits
for the answer and means nothing to the core.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.records import GroupSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProtocol:
    """One assignor that a member offers, in its order of preference."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequested:
    """JoinGroup. `new_member_id` is the id to hand out if the member has none."""

    token: int
    now_ms: int
    member_id: str
    new_member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Sequence[GroupProtocol]
    requires_known_member_id: bool
    """From JoinGroup v4: a dynamic member must come back with the id it was given (KIP-394)."""
    may_skip_assignment: bool = False
    """From JoinGroup v9: a rejoining static leader can be told not to assign (KIP-814)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequested:
    """SyncGroup. Only the leader's carries assignments: member id -> bytes."""

    token: int
    now_ms: int
    member_id: str
    group_instance_id: str | None = None
    generation_id: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReceived:
    """Heartbeat, or an offset commit, which counts as one."""

    token: int
    now_ms: int
    member_id: str
    group_instance_id: str | None = None
    generation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberIdentity:
    """A member that leaves: by member id, or (tools) by instance id with an empty member id."""

    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveRequested:
    """LeaveGroup; up to v2 for one member, later for several."""

    token: int
    now_ms: int
    members: Sequence[MemberIdentity]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStored:
    """The outcome of a `StoreGroup`."""

    now_ms: int
    snapshot: GroupSnapshot
    error: CoordinatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """A deadline that `ClassicGroup.deadline_ms` announced may have come."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUnloaded:
    """This node no longer coordinates the group (or the group is deleted)."""

    now_ms: int
    error: CoordinatorError


GroupEvent = (
    JoinRequested
    | SyncRequested
    | HeartbeatReceived
    | LeaveRequested
    | GroupStored
    | TimePassed
    | GroupUnloaded
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """One member, as the leader is told."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResult:
    """Answer to JoinGroup; `members` is filled for the leader only."""

    error: CoordinatorError = CoordinatorError.NONE
    member_id: str
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    members: Sequence[JoinedMember] = field(default=())
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """Answer to SyncGroup."""

    error: CoordinatorError = CoordinatorError.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResult:
    """Answer to Heartbeat."""

    error: CoordinatorError = CoordinatorError.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveResult:
    """Answer to LeaveGroup: one verdict per identity, in the order asked."""

    error: CoordinatorError = CoordinatorError.NONE
    members: Sequence[tuple[MemberIdentity, CoordinatorError]] = field(default=())


Result = JoinResult | SyncResult | HeartbeatResult | LeaveResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Complete the request that waits under `token`."""

    token: int
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreGroup:
    """Append the snapshot to the log and come back with `GroupStored`."""

    snapshot: GroupSnapshot


GroupEffect = Answer | StoreGroup
