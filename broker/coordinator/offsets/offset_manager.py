"""Commit, fetch, delete and expire offsets; delete groups. Durable before it is answered."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from broker.background import Slices, in_thread_if_large
from broker.clock import Clock
from broker.coordinator.config import GroupConfig
from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.group_coordinator_shard import GroupCoordinatorShard
from broker.coordinator.group_metadata_manager import GroupMetadataManager, LocatedGroup
from broker.coordinator.groups.group_events import HeartbeatReceived
from broker.coordinator.groups.group_session import check_member
from broker.coordinator.groups.group_state import GroupState
from broker.coordinator.offsets.committed_offsets import (
    AnyGroup,
    TopicPartition,
    group_subscription,
)
from broker.coordinator.partition_writer import KeyValue, PartitionWriter
from broker.coordinator.records import (
    CommittedOffset,
    OffsetKey,
    encode_group_key,
    encode_offset_key,
    encode_offset_value,
)
from broker.coordinator.transactions.transaction_metadata import Producer, SupportedOperation
from broker.metadata.topic_names import OFFSETS_TOPIC

TOMBSTONE_KEYS_BYTES_MAX: Final = 16 * 1024
"""Of one batch, which is made and appended at a stretch, lest it hits a newer commit."""
_TRIED_AGAIN: Final = (
    CoordinatorError.CONCURRENT_TRANSACTIONS,
    CoordinatorError.NOT_ENOUGH_REPLICAS,
)
OFFSET_BYTES: Final = 16
"""Of one partition in a request, about."""
Verify = Callable[
    [str, Producer, TopicPartition, Callable[[], object], SupportedOperation],
    Awaitable[tuple[CoordinatorError, object]],
]
"""Whether a partition is part of a producer's open transaction (VerifiedAppends.verify)."""


async def _not_served(*_: object) -> tuple[CoordinatorError, object]:
    return CoordinatorError.COORDINATOR_NOT_AVAILABLE, None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequested:
    """OffsetCommit of one group; `generation_id` -1 and no member id means a simple consumer."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    offsets: Mapping[TopicPartition, CommittedOffset]
    transaction: "OpenTransaction | None" = None


class OpenTransaction(NamedTuple):
    """The transaction that offsets are committed in: they count with its marker."""

    transactional_id: str
    producer: Producer
    operation: SupportedOperation = SupportedOperation.DEFAULT_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedOffsets:
    """Answer to OffsetFetch; a partition that is absent has no committed offset. Of those that are
    `unstable` an open transaction commits another one."""

    error: CoordinatorError = CoordinatorError.NONE
    offsets: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    unstable: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedOffsets:
    """Answer to OffsetDelete: one verdict for all, or one per partition."""

    error: CoordinatorError = CoordinatorError.NONE
    partitions: Mapping[TopicPartition, CoordinatorError] = field(default_factory=dict)


class OffsetManager:
    """Offsets of every group that this node coordinates."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupCoordinatorShard],
        manager: GroupMetadataManager,
        writer: PartitionWriter,
        config: GroupConfig,
    ) -> None:
        self._runtime = runtime
        self._manager = manager
        self._writer = writer
        self._config = config
        self.verify: Verify = _not_served
        """Asks the coordinator of a transaction; set when the node is assembled."""

    async def commit(self, request: CommitRequested) -> Mapping[TopicPartition, CoordinatorError]:
        """Store offsets of one group, all or none, except those with too much metadata."""
        size_bytes = len(request.offsets) * OFFSET_BYTES
        fitting, batch = await in_thread_if_large(size_bytes, self._build_batch, request)
        verification: object = None
        if request.transaction is not None:
            verification = await self._verify(request.group_id, request.transaction)
            if isinstance(verification, CoordinatorError):
                return dict.fromkeys(request.offsets, verification)
        # The group is asked just before the append: it may have changed meanwhile.
        located = self._find_committer(request)
        if isinstance(located, CoordinatorError):
            return dict.fromkeys(request.offsets, located)
        error = CoordinatorError.NONE
        if fitting and request.transaction is not None:
            producer = request.transaction.producer
            error = await self._store_pending(located, producer, fitting, batch, verification)
        elif fitting:
            error = await self._store(located, fitting, batch)
        verdicts = dict.fromkeys(request.offsets, CoordinatorError.OFFSET_METADATA_TOO_LARGE)
        verdicts.update(dict.fromkeys(fitting, error))
        return verdicts

    def _build_batch(
        self, request: CommitRequested
    ) -> tuple[Mapping[TopicPartition, CommittedOffset], bytes]:
        """Offsets whose metadata is not too long, and their batch (empty where there are none)."""
        limit = self._config.offset_metadata_max_bytes
        fitting = {k: v for k, v in request.offsets.items() if len(v.metadata.encode()) <= limit}
        records = [
            (_offset_key(request.group_id, key), encode_offset_value(committed))
            for key, committed in fitting.items()
        ]
        producer = None if request.transaction is None else request.transaction.producer
        return fitting, self._writer.build_batch(records, producer) if records else b""

    async def _verify(
        self, group_id: str, transaction: OpenTransaction
    ) -> object | CoordinatorError:
        """The token that lets the offsets into the log, or the refusal."""
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return shard
        transactional_id, producer, operation = transaction
        begin = partial(self._writer.begin_verification, shard.index, producer.id)
        if begin() is None:
            return CoordinatorError.NOT_COORDINATOR
        key = (OFFSETS_TOPIC, shard.index)
        error, token = await self.verify(transactional_id, producer, key, begin, operation)
        if error in _TRIED_AGAIN:
            return CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS  # clients try it again
        return token if error is CoordinatorError.NONE else error

    def _find_committer(self, request: CommitRequested) -> LocatedGroup | CoordinatorError:
        shard = self._runtime.locate(request.group_id)
        if isinstance(shard, CoordinatorError):
            return shard
        entry = shard.entries.get(request.group_id)
        if entry is None:
            if request.generation_id >= 0:
                return CoordinatorError.ILLEGAL_GENERATION
            entry = shard.create_entry(request.group_id)
        error = self._check_commit(entry.group, request)
        return (
            error if error is not CoordinatorError.NONE else LocatedGroup(shard=shard, entry=entry)
        )

    def _check_commit(self, group: AnyGroup, request: CommitRequested) -> CoordinatorError:
        """Kafka's validateOffsetCommit of either kind of group; a classic member's commit renews
        its session."""
        if isinstance(group, ConsumerGroup):
            is_outside = request.generation_id < 0 and not group.members
            if is_outside:
                return CoordinatorError.NONE
            return group.check_epoch(request.member_id, request.generation_id)
        is_transactional = request.transaction is not None
        is_named = bool(request.member_id or request.group_instance_id)
        if request.generation_id < 0 and (
            group.state is GroupState.EMPTY or (is_transactional and not is_named)
        ):
            return CoordinatorError.NONE
        sign_of_life = HeartbeatReceived(
            token=0,
            now_ms=self._manager.now_ms(),
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            generation_id=request.generation_id,
        )
        error = check_member(group, sign_of_life)
        if error is not CoordinatorError.NONE:
            return error
        group.roster.members[request.member_id].renew_session(sign_of_life.now_ms)
        if group.state is GroupState.COMPLETING_REBALANCE and not is_transactional:
            return CoordinatorError.REBALANCE_IN_PROGRESS
        return CoordinatorError.NONE

    async def _store(
        self,
        located: LocatedGroup,
        offsets: Mapping[TopicPartition, CommittedOffset],
        batch: bytes,
    ) -> CoordinatorError:
        appended = await self._writer.append(located.shard.index, batch)
        if appended.error is CoordinatorError.NONE and located.shard.is_loaded:
            # Should the group have been deleted meanwhile, the log has it anew, and so do we.
            entry = located.shard.create_entry(located.entry.group.group_id)
            for position, (key, committed) in enumerate(offsets.items()):
                entry.offsets.put(key, committed, appended.base_offset + position)
        return appended.error

    async def _store_pending(
        self,
        located: LocatedGroup,
        producer: Producer,
        offsets: Mapping[TopicPartition, CommittedOffset],
        batch: bytes,
        verification: object,
    ) -> CoordinatorError:
        shard = located.shard
        appended = await self._writer.append(shard.index, batch, verification=verification)
        if appended.error is CoordinatorError.NONE and shard.is_loaded:
            group_id = located.entry.group.group_id
            shard.pending.put(producer.id, group_id, offsets, appended.base_offset)
        return appended.error

    def end_transaction(self, partition: int, producer_id: int, is_commit: bool) -> None:
        """A marker was written into a partition of __consumer_offsets."""
        for shard in self._runtime.loaded():
            if shard.index == partition:
                shard.end_transaction(producer_id, is_commit=is_commit)

    def fetch(
        self,
        group_id: str,
        wanted: Iterable[TopicPartition] | None,
        *,
        is_stable_required: bool = False,
        member: tuple[str, int] | None = None,
    ) -> FetchedOffsets:
        """Committed offsets of the wanted partitions, or with None of all that have one; for a
        `member` with its epoch, where one asks."""
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return FetchedOffsets(error=shard)
        entry = shard.entries.get(group_id)
        if entry is None:
            return FetchedOffsets()
        if member is not None and isinstance(entry.group, ConsumerGroup):
            error = entry.group.check_epoch(*member)
            if error is not CoordinatorError.NONE:
                return FetchedOffsets(error=error)
        keys = sorted(entry.offsets) if wanted is None else wanted
        found = {key: entry.offsets.get(*key) for key in keys}
        unstable = shard.pending.keys(group_id) if is_stable_required else frozenset()
        return FetchedOffsets(
            offsets={k: v for k, v in found.items() if v is not None}, unstable=unstable
        )

    async def delete_offsets(self, group_id: str, keys: Sequence[TopicPartition]) -> DeletedOffsets:
        """Forget offsets of topics that no member of the group subscribes to."""
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return DeletedOffsets(error=shard)
        entry = shard.entries.get(group_id)
        if entry is None:
            return DeletedOffsets(error=CoordinatorError.GROUP_ID_NOT_FOUND)
        in_use: frozenset[str] | None = frozenset()
        if entry.group.state is not GroupState.EMPTY:
            in_use = group_subscription(entry.group)
        if in_use is None:
            return DeletedOffsets(error=CoordinatorError.NON_EMPTY_GROUP)
        free = [key for key in keys if key[0] not in in_use]
        verdicts = dict.fromkeys(keys, CoordinatorError.GROUP_SUBSCRIBED_TO_TOPIC)
        error = await self._forget(LocatedGroup(shard=shard, entry=entry), free)
        verdicts.update(dict.fromkeys(free, error))
        return DeletedOffsets(partitions=verdicts)

    async def delete_group(self, group_id: str) -> CoordinatorError:
        """Remove a group without members, its offsets included."""
        shard = self._runtime.locate(group_id)
        if isinstance(shard, CoordinatorError):
            return shard
        entry = shard.entries.get(group_id)
        if entry is None:
            return CoordinatorError.GROUP_ID_NOT_FOUND
        if entry.group.state is not GroupState.EMPTY:
            return CoordinatorError.NON_EMPTY_GROUP
        return await self._delete(LocatedGroup(shard=shard, entry=entry))

    async def _delete(self, located: LocatedGroup) -> CoordinatorError:
        error = await self._forget(located, list(located.entry.offsets))
        if error is not CoordinatorError.NONE:
            return error
        group = located.entry.group
        tombstones: list[KeyValue] = [(encode_group_key(group.group_id), None)]
        if isinstance(group, ConsumerGroup):
            tombstones = group.tombstones()
        batch = self._writer.build_batch(tombstones)
        appended = await self._writer.append(located.shard.index, batch)
        # Who joined or committed meanwhile stays.
        is_idle = located.entry.group.state is GroupState.EMPTY and not located.entry.offsets
        if appended.error is CoordinatorError.NONE and is_idle:
            self._manager.kill(located, CoordinatorError.GROUP_ID_NOT_FOUND)
        return appended.error

    async def _forget(
        self, located: LocatedGroup, keys: Sequence[TopicPartition]
    ) -> CoordinatorError:
        """Write tombstones in batches of bounded size, and forget what they cover."""
        group_id = located.entry.group.group_id
        waiting, slices = deque(keys), Slices()
        while waiting:
            await slices.pause()
            known: list[TopicPartition] = []
            tombstones: list[KeyValue] = []
            size_bytes = 0
            while waiting and size_bytes < TOMBSTONE_KEYS_BYTES_MAX:
                key = waiting.popleft()
                if key not in located.entry.offsets.stored:
                    continue
                known.append(key)
                tombstones.append((_offset_key(group_id, key), None))
                size_bytes += len(tombstones[-1][0])
            if not tombstones:
                break
            batch = self._writer.build_batch(tombstones)
            appended = await self._writer.append(located.shard.index, batch)
            if appended.error is not CoordinatorError.NONE:
                return appended.error
            for key in known:
                located.entry.offsets.remove(key)
            located.shard.pending.forget(group_id, known)
        return CoordinatorError.NONE

    async def expire(self, clock: Clock) -> int:
        """Forget what has outlived its retention; returns the number of offsets forgotten."""
        forgotten, slices = 0, Slices()
        for located in self._all():
            await slices.pause()
            keys = located.entry.expired_offsets(
                wall_ms=clock.wall_ms(), retention_ms=self._config.offsets_retention_ms
            )
            pending = located.shard.pending.keys(located.entry.group.group_id)
            keys = [key for key in keys if key not in pending]
            if keys and await self._forget(located, keys) is CoordinatorError.NONE:
                forgotten += len(keys)
            if located.shard.is_loaded and located.entry.is_obsolete and not pending:
                await self._delete(located)
        return forgotten

    async def forget_topics(self, topics: frozenset[str]) -> None:
        """Forget every group's offsets of topics that were deleted."""
        slices = Slices()
        for located in self._all():
            await slices.pause()
            group_id = located.entry.group.group_id
            pending = [k for k in located.shard.pending.keys(group_id) if k[0] in topics]
            located.shard.pending.forget(group_id, pending)
            keys = [key for key in located.entry.offsets if key[0] in topics]
            if keys:
                await self._forget(located, keys)

    def _all(self) -> Iterator[LocatedGroup]:
        """Groups of now; those that are made or moved meanwhile have their turn the next time."""
        for shard in list(self._runtime.loaded()):
            for entry in list(shard.entries.values()):
                if shard.is_loaded:
                    yield LocatedGroup(shard=shard, entry=entry)


def _offset_key(group_id: str, key: TopicPartition) -> bytes:
    topic, partition = key
    return encode_offset_key(OffsetKey(group_id=group_id, topic=topic, partition=partition))
