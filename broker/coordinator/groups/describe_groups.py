"""Lists, descriptions and samples of the groups on this node."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.group_coordinator_shard import GroupCoordinatorShard
from broker.coordinator.groups.consumer_protocol import PROTOCOL_TYPE, assigned_partitions
from broker.coordinator.groups.group_state import ClassicGroup, GroupState
from broker.coordinator.groups.roster import Member
from broker.coordinator.offsets.committed_offsets import AnyGroup, GroupEntry, StoredOffset
from broker.metadata.metadata_service import MetadataService
from broker.metrics_schema import NO_COMMIT

CLASSIC, CONSUMER = "classic", "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """One line of ListGroups."""

    group_id: str
    protocol_type: str
    state: GroupState
    group_type: str = CLASSIC


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member in DescribeGroups; metadata and assignment are empty unless the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """One group in DescribeGroups."""

    group_id: str
    error: CoordinatorError = CoordinatorError.NONE
    state: GroupState | None = None
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[MemberDescription] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedReading:
    """A committed offset as it stands, for the metrics."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    """``NO_COMMIT``: a member owns the partition, and the group has committed nothing there."""
    commit_ms: int | None
    member_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """A group as it stands, for the metrics."""

    group_id: str
    state: GroupState
    members: int
    protocol_name: str
    commits: Sequence[CommittedReading]
    """Every committed partition, then every other one that a member owns."""


class GroupViews:
    """Reads the groups of all loaded partitions; changes nothing."""

    def __init__(
        self, runtime: CoordinatorRuntime[GroupCoordinatorShard], metadata: MetadataService
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[GroupListing] | CoordinatorError:
        """Groups in any of the states and of any of the types (all, where none are named)."""
        if self._runtime.is_loading:
            return CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS
        kinds = {name.lower() for name in types}
        wanted = {name.lower() for name in states}
        return [
            GroupListing(
                group_id=g.group_id,
                protocol_type=g.protocol_type,
                state=g.state,
                group_type=_type_of(g),
            )
            for g in (entry.group for entry in self._entries())
            if (not wanted or g.state.lower() in wanted) and (not kinds or _type_of(g) in kinds)
        ]

    def describe(self, group_id: str) -> GroupDescription:
        """One group; GROUP_ID_NOT_FOUND with state Dead when there is none."""
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return GroupDescription(group_id=group_id, error=shard)
        entry = shard.entries.get(group_id)
        if entry is None or isinstance(entry.group, ConsumerGroup):
            missing = CoordinatorError.GROUP_ID_NOT_FOUND
            return GroupDescription(group_id=group_id, error=missing, state=GroupState.DEAD)
        return _describe(entry.group)

    def consumer_group(self, group_id: str) -> ConsumerGroup | CoordinatorError | None:
        """A group of the consumer protocol; None where the group is a classic one."""
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return shard
        entry = shard.entries.get(group_id)
        if entry is None:
            return CoordinatorError.GROUP_ID_NOT_FOUND
        return entry.group if isinstance(entry.group, ConsumerGroup) else None

    def readings(self) -> Iterator[GroupReading]:
        """Every group with its committed offsets."""
        entries = list(self._entries())
        has_ids = any(isinstance(entry.group, ConsumerGroup) for entry in entries)
        topics = self._metadata.image.topics.values() if has_ids else ()
        names = {topic.topic_id: topic.name for topic in topics}
        return (_read(entry, names) for entry in entries)

    def _entries(self) -> Iterator[GroupEntry]:
        for shard in self._runtime.loaded():
            yield from shard.entries.values()


def _describe(group: ClassicGroup) -> GroupDescription:
    is_stable = group.state is GroupState.STABLE
    return GroupDescription(
        group_id=group.group_id,
        state=group.state,
        protocol_type=group.protocol_type,
        protocol_name=(group.protocol_name or "") if is_stable else "",
        members=tuple(
            _describe_member(member, group.protocol_name if is_stable else None)
            for member in group.roster
        ),
    )


def _describe_member(member: Member, protocol_name: str | None) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=member.metadata(protocol_name),
        assignment=b"" if protocol_name is None else member.assignment,
    )


def _type_of(group: AnyGroup) -> str:
    return CONSUMER if isinstance(group, ConsumerGroup) else CLASSIC


def _read(entry: GroupEntry, names: Mapping[UUID, str]) -> GroupReading:
    group, stored = entry.group, entry.offsets.stored
    if isinstance(group, ConsumerGroup):
        owners, members, protocol_name = _holders(group, names), len(group.members), group.assignor
    else:
        owners, members = _owners(group), len(group.roster)
        protocol_name = group.protocol_name or ""
    return GroupReading(
        group_id=group.group_id,
        state=group.state,
        members=members,
        protocol_name=protocol_name,
        commits=[
            _commit(group.group_id, key, stored.get(key), owners.get(key))
            for key in {**stored, **owners}
        ],
    )


def _commit(
    group_id: str, key: tuple[str, int], stored: StoredOffset | None, owner: str | None
) -> CommittedReading:
    committed = None if stored is None else stored.committed
    return CommittedReading(
        group_id=group_id,
        topic=key[0],
        partition=key[1],
        committed_offset=NO_COMMIT if committed is None else committed.offset,
        commit_ms=None if committed is None else committed.commit_ms,
        member_id=owner,
    )


def _holders(group: ConsumerGroup, names: Mapping[UUID, str]) -> dict[tuple[str, int], str]:
    return {
        (names[topic], partition): member_id
        for topic, holders in group.holders.items()
        if topic in names
        for partition, member_id in holders.items()
    }


def _owners(group: ClassicGroup) -> dict[tuple[str, int], str]:
    if group.state is not GroupState.STABLE or group.protocol_type != PROTOCOL_TYPE:
        return {}
    return {
        key: member.member_id
        for member in group.roster
        for key in assigned_partitions(member.assignment)
    }
