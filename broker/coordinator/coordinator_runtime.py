"""Which offsets partitions this node coordinates, and loading them when it becomes their leader.

Leadership comes from the metadata; the groups come from the log that the leader holds. While a
partition is read its groups answer COORDINATOR_LOAD_IN_PROGRESS, and after resigning
NOT_COORDINATOR.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from broker.background import Tasks, log_failure
from broker.clock import Clock
from broker.coordinator.config import GroupConfig, partition_for
from broker.coordinator.errors import GroupError
from broker.coordinator.groups.group_state import ClassicGroup, build_group
from broker.coordinator.offsets.committed_offsets import GroupEntry, GroupOffsets
from broker.coordinator.ports import LogPort, ReplicaPort
from broker.coordinator.replay import Replay, Replayed
from broker.metadata.image import MetadataImage
from broker.metadata.metadata_service import MetadataService
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import iter_batch_headers, iter_records

_LOG = logging.getLogger(__name__)
_LEADERSHIP_POLL_S: Final = 0.02
_LOAD_RETRY_S: Final = 1.0
_LOAD_STEP_BYTES: Final = 131_072
"""Read between two turns of the event loop: some ten milliseconds of work."""


@dataclass(slots=True, kw_only=True, eq=False)
class OffsetsPartition:
    """One partition of __consumer_offsets that this node leads, with its groups by id."""

    index: int
    leader_epoch: int
    is_loaded: bool = False
    entries: dict[str, GroupEntry] = field(default_factory=dict)


PartitionCallback = Callable[[OffsetsPartition], None]


def _ignore(_: OffsetsPartition) -> None:
    return None


class OffsetsPartitions:
    """Follows the metadata; owns the groups of every partition that this node leads."""

    def __init__(
        self,
        replicas: ReplicaPort,
        metadata: MetadataService,
        clock: Clock,
        config: GroupConfig,
        *,
        node_id: int,
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._config = config
        self._node_id = node_id
        self._led: dict[int, OffsetsPartition] = {}
        self._loads = Tasks("loading of groups", log_failure)
        self.on_loaded: PartitionCallback = _ignore
        self.on_unloaded: PartitionCallback = _ignore
        """Called before the groups are forgotten, so that those who wait can be answered."""

    def start(self) -> None:
        """Follow the metadata from now on."""
        self._metadata.subscribe(lambda _old, new, _changed: self._follow(new))
        self._follow(self._metadata.image)

    async def stop(self) -> None:
        """Resign everywhere and end the loads."""
        for index in list(self._led):
            self._resign(index)
        await self._loads.stop()

    def loaded(self) -> Iterator[OffsetsPartition]:
        """Partitions that answer now."""
        return (partition for partition in self._led.values() if partition.is_loaded)

    @property
    def is_loading(self) -> bool:
        """Whether some partition is still being read."""
        return any(not partition.is_loaded for partition in self._led.values())

    def locate(self, group_id: str) -> OffsetsPartition | GroupError:
        """The loaded partition that keeps a group, or what to tell the client."""
        topic = self._metadata.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return GroupError.NOT_COORDINATOR
        partition = self._led.get(partition_for(group_id, len(topic.partitions)))
        if partition is None:
            return GroupError.NOT_COORDINATOR
        return partition if partition.is_loaded else GroupError.COORDINATOR_LOAD_IN_PROGRESS

    def create_entry(self, partition: OffsetsPartition, group_id: str) -> GroupEntry:
        """The group's entry, made Empty if it is new."""
        entry = partition.entries.get(group_id)
        if entry is None:
            now_ms, wall_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
            group = ClassicGroup(
                group_id=group_id,
                initial_delay_ms=self._config.initial_rebalance_delay_ms,
                wall_offset_ms=wall_ms - now_ms,
                size_max=self._config.max_size,
                state_ms=wall_ms,
            )
            entry = partition.entries[group_id] = GroupEntry(group=group)
        return entry

    def _follow(self, image: MetadataImage) -> None:
        topic = image.topics.get(OFFSETS_TOPIC)
        partitions = {} if topic is None else topic.partitions
        for index in list(self._led):
            if index not in partitions or partitions[index].leader != self._node_id:
                self._resign(index)
        for index, view in partitions.items():
            if view.leader == self._node_id:
                self._lead(index, view.leader_epoch)

    def _lead(self, index: int, leader_epoch: int) -> None:
        current = self._led.get(index)
        if current is not None:
            # Elected again without anybody else in between: the groups here are the newest.
            current.leader_epoch = leader_epoch
            return
        partition = OffsetsPartition(index=index, leader_epoch=leader_epoch)
        self._led[index] = partition
        self._loads.keep(partial(self._load, partition))

    def _resign(self, index: int) -> None:
        partition = self._led.pop(index)
        self.on_unloaded(partition)
        partition.is_loaded = False
        partition.entries.clear()

    def _is_led(self, partition: OffsetsPartition) -> bool:
        return self._led.get(partition.index) is partition

    async def _load(self, partition: OffsetsPartition) -> None:
        replayed = None
        while self._is_led(partition) and replayed is None:
            local = self._replicas.partition(OFFSETS_TOPIC, partition.index)
            if local is None or not local.is_leader:
                await asyncio.sleep(_LEADERSHIP_POLL_S)
                continue
            replayed = await self._try_read(local.log, partition)
        if replayed is None or not self._is_led(partition):
            return
        self._install(partition, replayed)
        partition.is_loaded = True
        self.on_loaded(partition)

    async def _try_read(self, log: LogPort, partition: OffsetsPartition) -> Replayed | None:
        try:
            return await self._read(log)
        except Exception:  # noqa: BLE001  # whatever is wrong, the node and its partitions go on
            _LOG.exception("loading %s-%d failed, trying again", OFFSETS_TOPIC, partition.index)
            await asyncio.sleep(_LOAD_RETRY_S)
            return None

    async def _read(self, log: LogPort) -> Replayed:
        replay = Replay()
        step_bytes = min(self._config.offsets_load_buffer_bytes, _LOAD_STEP_BYTES)
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            chunk = log.read_bytes(offset, max_bytes=step_bytes, max_offset=end)
            next_offset = replay_chunk(replay, chunk, offset)
            if next_offset == offset:
                break
            offset = next_offset
            # A long log must not hold up the other connections.
            await asyncio.sleep(0)
        replayed = replay.finish()
        if replayed.unreadable:
            _LOG.warning("%d records of the offsets topic are not readable", replayed.unreadable)
        return replayed

    def _install(self, partition: OffsetsPartition, replayed: Replayed) -> None:
        now_ms, wall_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
        for group_id in replayed.group_ids():
            snapshot = replayed.groups.get(group_id)
            if snapshot is None:
                entry = self.create_entry(partition, group_id)
            else:
                group = build_group(
                    snapshot,
                    now_ms=now_ms,
                    wall_ms=wall_ms,
                    initial_delay_ms=self._config.initial_rebalance_delay_ms,
                    size_max=self._config.max_size,
                )
                entry = partition.entries[group_id] = GroupEntry(group=group)
            entry.offsets = replayed.offsets.get(group_id, GroupOffsets())


def replay_chunk(replay: Replay, chunk: bytes, offset: int) -> int:
    """Apply the records at or past `offset`; returns the offset to read next. What a damaged batch
    holds is left out: a group's older offset is better than a partition without a coordinator."""
    view = memoryview(chunk)
    for header, position in iter_batch_headers(view):
        if not header.is_control:
            try:
                for record in iter_records(view[position : position + header.size_bytes]):
                    if record.offset >= offset:
                        replay.apply(record)
            except MalformedRecordsError as error:
                _LOG.error(
                    "offsets topic: up to %d records of offsets %d to %d are left out: %s",
                    header.records_count,
                    header.base_offset,
                    header.last_offset,
                    error,
                )
        offset = max(offset, header.last_offset + 1)
    return offset
