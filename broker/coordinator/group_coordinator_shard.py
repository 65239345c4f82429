"""The groups that one partition of __consumer_offsets keeps (Kafka's GroupCoordinatorShard)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from broker.clock import Clock
from broker.coordinator.config import GroupConfig
from broker.coordinator.groups.group_state import ClassicGroup, build_group
from broker.coordinator.offsets.committed_offsets import GroupEntry, GroupOffsets
from broker.coordinator.offsets.pending_offsets import PendingOffsets
from broker.coordinator.replay import Replay
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol.records import Record

AT_ONCE_MAX: Final = 200
"""The records of so many keys are decoded within the event loop: some 2 ms."""

_LOG = logging.getLogger(__name__)


class GroupCoordinatorShard:
    """Groups by id, once the records are replayed."""

    def __init__(
        self,
        index: int,
        clock: Clock,
        config: GroupConfig,
        *,
        loaded: Callable[["GroupCoordinatorShard"], Awaitable[None]],
        unloaded: Callable[["GroupCoordinatorShard"], None],
    ) -> None:
        """`loaded` hears when the groups are there; `unloaded` before they are forgotten."""
        self.index = index
        self.is_loaded = False
        self.entries: dict[str, GroupEntry] = {}
        self.pending = PendingOffsets()
        self._clock = clock
        self._config = config
        self._loaded = loaded
        self._unloaded = unloaded
        self._replay = Replay()

    def replay(self, record: Record, producer_id: int | None) -> None:
        """Account for one record; they come in the order of the log."""
        self._replay.apply(record, producer_id)

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """The producer's transaction ended here."""
        self._replay.end(producer_id, is_commit=is_commit)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """The marker is replicated: what the transaction committed counts now, or never."""
        for group_id, offsets in self.pending.end(producer_id).items():
            if not is_commit:
                continue
            kept = self.create_entry(group_id).offsets
            for key, stored in offsets.stored.items():
                kept.put(key, *stored)

    async def on_loaded(self) -> None:
        """Make the groups that the records tell of; thousands are made in a thread."""
        if len(self._replay.latest) > AT_ONCE_MAX:
            await asyncio.to_thread(self._make_groups)
        else:
            self._make_groups()
        await self._loaded(self)
        self.is_loaded = True

    def _make_groups(self) -> None:
        replayed, self._replay = self._replay.finish(), Replay()
        if replayed.unreadable:
            _LOG.warning(
                "%d records of %s-%d are not readable",
                *(replayed.unreadable, OFFSETS_TOPIC, self.index),
            )
        self.pending = replayed.pending
        now_ms, wall_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
        for group_id in replayed.group_ids():
            snapshot = replayed.groups.get(group_id)
            if (consumer := replayed.consumers.get(group_id)) is not None:
                consumer.start_clocks(self._config.consumer_session_timeout_ms, now_ms)
                entry = self.entries[group_id] = GroupEntry(group=consumer)
            elif snapshot is None:
                entry = self.create_entry(group_id)
            else:
                group = build_group(
                    snapshot,
                    now_ms=now_ms,
                    wall_ms=wall_ms,
                    initial_delay_ms=self._config.initial_rebalance_delay_ms,
                    size_max=self._config.max_size,
                )
                entry = self.entries[group_id] = GroupEntry(group=group)
            entry.offsets = replayed.offsets.get(group_id, GroupOffsets())

    def on_unloaded(self) -> None:
        """Each group ends here, so that those who wait are answered."""
        self._unloaded(self)
        self.is_loaded = False
        self.entries.clear()
        self.pending = PendingOffsets()

    def create_entry(self, group_id: str) -> GroupEntry:
        """The group's entry, made Empty if it is new."""
        entry = self.entries.get(group_id)
        if entry is None:
            now_ms, wall_ms = self._clock.monotonic_ms(), self._clock.wall_ms()
            group = ClassicGroup(
                group_id=group_id,
                initial_delay_ms=self._config.initial_rebalance_delay_ms,
                wall_offset_ms=wall_ms - now_ms,
                size_max=self._config.max_size,
                state_ms=wall_ms,
            )
            entry = self.entries[group_id] = GroupEntry(group=group)
        return entry
