"""Commit, fetch, delete and expire offsets; delete groups. Durable before it is answered."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from broker.clock import Clock
from broker.coordinator.config import GroupConfig
from broker.coordinator.coordinator_runtime import CoordinatorRuntime, LocatedGroup
from broker.coordinator.errors import GroupError
from broker.coordinator.group_log import GroupLog, KeyValue
from broker.coordinator.groups.group_events import HeartbeatReceived
from broker.coordinator.groups.group_session import check_member
from broker.coordinator.groups.group_state import ClassicGroup, GroupState
from broker.coordinator.offsets.committed_offsets import TopicPartition, group_subscription
from broker.coordinator.offsets_partitions import OffsetsPartitions
from broker.coordinator.records import (
    CommittedOffset,
    OffsetKey,
    encode_group_key,
    encode_offset_key,
    encode_offset_value,
)

TOMBSTONE_KEYS_BYTES_MAX: Final = 256 * 1024
"""Of one batch: well below the smallest max.message.bytes in use, however long names are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequested:
    """OffsetCommit of one group; `generation_id` -1 and no member id means a simple consumer."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    offsets: Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedOffsets:
    """Answer to OffsetFetch; a partition that is absent has no committed offset."""

    error: GroupError = GroupError.NONE
    offsets: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedOffsets:
    """Answer to OffsetDelete: one verdict for all, or one per partition."""

    error: GroupError = GroupError.NONE
    partitions: Mapping[TopicPartition, GroupError] = field(default_factory=dict)


class OffsetManager:
    """Offsets of every group that this node coordinates."""

    def __init__(
        self,
        partitions: OffsetsPartitions,
        engine: CoordinatorRuntime,
        log: GroupLog,
        config: GroupConfig,
    ) -> None:
        self._partitions = partitions
        self._engine = engine
        self._log = log
        self._config = config

    async def commit(self, request: CommitRequested) -> Mapping[TopicPartition, GroupError]:
        """Store offsets of one group, all or none, except those with too much metadata."""
        limit = self._config.offset_metadata_max_bytes
        fitting = {k: v for k, v in request.offsets.items() if len(v.metadata.encode()) <= limit}
        verdicts = dict.fromkeys(request.offsets, GroupError.OFFSET_METADATA_TOO_LARGE)
        seat = self._find_committer(request)
        if isinstance(seat, GroupError):
            return dict.fromkeys(request.offsets, seat)
        error = await self._store(seat, fitting) if fitting else GroupError.NONE
        verdicts.update(dict.fromkeys(fitting, error))
        return verdicts

    def _find_committer(self, request: CommitRequested) -> LocatedGroup | GroupError:
        partition = self._partitions.locate(request.group_id)
        if isinstance(partition, GroupError):
            return partition
        entry = partition.entries.get(request.group_id)
        if entry is None:
            if request.generation_id >= 0:
                return GroupError.ILLEGAL_GENERATION
            entry = self._partitions.create_entry(partition, request.group_id)
        error = self._check_commit(entry.group, request)
        return (
            error
            if error is not GroupError.NONE
            else LocatedGroup(partition=partition, entry=entry)
        )

    def _check_commit(self, group: ClassicGroup, request: CommitRequested) -> GroupError:
        """Kafka's ClassicGroup.validateOffsetCommit; a member's commit renews its session."""
        if request.generation_id < 0 and group.state is GroupState.EMPTY:
            return GroupError.NONE
        sign_of_life = HeartbeatReceived(
            token=0,
            now_ms=self._engine.now_ms(),
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            generation_id=request.generation_id,
        )
        error = check_member(group, sign_of_life)
        if error is not GroupError.NONE:
            return error
        group.roster.members[request.member_id].renew_session(sign_of_life.now_ms)
        if group.state is GroupState.COMPLETING_REBALANCE:
            return GroupError.REBALANCE_IN_PROGRESS
        return GroupError.NONE

    async def _store(
        self, seat: LocatedGroup, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> GroupError:
        group_id = seat.entry.group.group_id
        records = [
            (_offset_key(group_id, key), encode_offset_value(committed))
            for key, committed in offsets.items()
        ]
        appended = await self._log.append(seat.partition.index, records)
        if appended.error is GroupError.NONE and seat.partition.is_loaded:
            # Should the group have been deleted meanwhile, the log has it anew, and so do we.
            entry = self._partitions.create_entry(seat.partition, group_id)
            for position, (key, committed) in enumerate(offsets.items()):
                entry.offsets.put(key, committed, appended.base_offset + position)
        return appended.error

    def fetch(self, group_id: str, wanted: Iterable[TopicPartition] | None) -> FetchedOffsets:
        """Committed offsets of the wanted partitions, or with None of all that have one."""
        partition = self._partitions.locate(group_id)
        if isinstance(partition, GroupError):
            return FetchedOffsets(error=partition)
        entry = partition.entries.get(group_id)
        if entry is None:
            return FetchedOffsets()
        keys = sorted(entry.offsets) if wanted is None else wanted
        found = {key: entry.offsets.get(*key) for key in keys}
        return FetchedOffsets(offsets={k: v for k, v in found.items() if v is not None})

    async def delete_offsets(self, group_id: str, keys: Sequence[TopicPartition]) -> DeletedOffsets:
        """Forget offsets of topics that no member of the group subscribes to."""
        partition = self._partitions.locate(group_id)
        if isinstance(partition, GroupError):
            return DeletedOffsets(error=partition)
        entry = partition.entries.get(group_id)
        if entry is None:
            return DeletedOffsets(error=GroupError.GROUP_ID_NOT_FOUND)
        in_use: frozenset[str] | None = frozenset()
        if entry.group.state is not GroupState.EMPTY:
            in_use = group_subscription(entry.group)
        if in_use is None:
            return DeletedOffsets(error=GroupError.NON_EMPTY_GROUP)
        free = [key for key in keys if key[0] not in in_use]
        verdicts = dict.fromkeys(keys, GroupError.GROUP_SUBSCRIBED_TO_TOPIC)
        error = await self._forget(LocatedGroup(partition=partition, entry=entry), free)
        verdicts.update(dict.fromkeys(free, error))
        return DeletedOffsets(partitions=verdicts)

    async def delete_group(self, group_id: str) -> GroupError:
        """Remove a group without members, its offsets included."""
        partition = self._partitions.locate(group_id)
        if isinstance(partition, GroupError):
            return partition
        entry = partition.entries.get(group_id)
        if entry is None:
            return GroupError.GROUP_ID_NOT_FOUND
        if entry.group.state is not GroupState.EMPTY:
            return GroupError.NON_EMPTY_GROUP
        return await self._delete(LocatedGroup(partition=partition, entry=entry))

    async def _delete(self, seat: LocatedGroup) -> GroupError:
        error = await self._forget(seat, list(seat.entry.offsets))
        if error is not GroupError.NONE:
            return error
        tombstone = (encode_group_key(seat.entry.group.group_id), None)
        appended = await self._log.append(seat.partition.index, [tombstone])
        # Who joined or committed meanwhile stays.
        is_idle = seat.entry.group.state is GroupState.EMPTY and not seat.entry.offsets
        if appended.error is GroupError.NONE and is_idle:
            self._engine.kill(seat, GroupError.GROUP_ID_NOT_FOUND)
        return appended.error

    async def _forget(self, seat: LocatedGroup, keys: Sequence[TopicPartition]) -> GroupError:
        """Write tombstones in batches of bounded size, and forget what they cover."""
        group_id = seat.entry.group.group_id
        waiting = deque(keys)
        while waiting:
            known: list[TopicPartition] = []
            tombstones: list[KeyValue] = []
            size_bytes = 0
            while waiting and size_bytes < TOMBSTONE_KEYS_BYTES_MAX:
                key = waiting.popleft()
                if key not in seat.entry.offsets.stored:
                    continue
                known.append(key)
                tombstones.append((_offset_key(group_id, key), None))
                size_bytes += len(tombstones[-1][0])
            if not tombstones:
                break
            appended = await self._log.append(seat.partition.index, tombstones)
            if appended.error is not GroupError.NONE:
                return appended.error
            for key in known:
                seat.entry.offsets.remove(key)
        return GroupError.NONE

    async def expire(self, clock: Clock) -> int:
        """Forget what has outlived its retention; returns the number of offsets forgotten."""
        forgotten = 0
        for seat in self._seats():
            keys = seat.entry.expired_offsets(
                wall_ms=clock.wall_ms(), retention_ms=self._config.offsets_retention_ms
            )
            if keys and await self._forget(seat, keys) is GroupError.NONE:
                forgotten += len(keys)
            if seat.partition.is_loaded and seat.entry.is_obsolete:
                await self._delete(seat)
        return forgotten

    async def forget_topics(self, topics: frozenset[str]) -> None:
        """Forget every group's offsets of topics that were deleted."""
        for seat in self._seats():
            keys = [key for key in seat.entry.offsets if key[0] in topics]
            if keys:
                await self._forget(seat, keys)

    def _seats(self) -> list[LocatedGroup]:
        return [
            LocatedGroup(partition=partition, entry=entry)
            for partition in self._partitions.loaded()
            for entry in partition.entries.values()
        ]


def _offset_key(group_id: str, key: TopicPartition) -> bytes:
    topic, partition = key
    return encode_offset_key(OffsetKey(group_id=group_id, topic=topic, partition=partition))
