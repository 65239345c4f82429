"""Reads from the cluster how far groups are behind on the partitions of a move.

ListOffsets by time tells the first record that is not older than a moment, so a commit before it
has unread records that are. Nothing is consumed, and no history is needed.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol

from control.kafka.connection.together import together
from control.kafka.errors import KafkaPortError
from control.kafka.ports import GroupsPort, OffsetAt, OffsetSpec
from control.model.ids import TopicPartition
from control.move.yields import YieldRules
from control.operations.executor.yielding.consumer_yield import GroupReading

FIND_EVERY_S: Final = 60.0
"""How often all groups are asked; between, only those that read what moves."""
TOGETHER: Final = 8
WITHOUT_MEMBERS: Final = frozenset({"empty", "dead"})
SHARE: Final = "share"
CAUGHT_UP_SHARE: Final = 0.5

Commits = Mapping[TopicPartition, int]


class OffsetsPort(Protocol):
    """Offsets of partitions."""

    async def list_offsets(
        self, partitions: Iterable[TopicPartition], at: int = OffsetSpec.LATEST
    ) -> Mapping[TopicPartition, OffsetAt]:
        """At a time in ms, or an OffsetSpec."""


class ConsumerProbe:
    """Groups that read some partitions of one cluster."""

    def __init__(
        self,
        groups: GroupsPort,
        offsets: OffsetsPort,
        partitions: Collection[TopicPartition],
        rules: YieldRules,
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._partitions = frozenset(partitions)
        self._rules = rules
        self._readers: set[str] = set()
        self._found_s: float | None = None

    async def read(self) -> Mapping[str, GroupReading]:
        """Groups with members that have commits there; others are left out.

        :raises KafkaPortError: the cluster does not answer, or its records have no times.
        """
        commits = await self._commits()
        keys = {key for read in commits.values() for key in read}
        if not keys:
            return {}
        now_ms = int(time.time() * 1000)
        late_ms = int(self._rules.behind_s * 1000)
        half_ms, list_offsets = int(late_ms * CAUGHT_UP_SHARE), self._offsets.list_offsets
        async with together() as tasks:
            ends = tasks.create_task(list_offsets(keys))
            late = tasks.create_task(list_offsets(keys, now_ms - late_ms))
            half = tasks.create_task(list_offsets(keys, now_ms - half_ms))
        at = ends.result(), late.result(), half.result()
        return {group: _reading(read, at) for group, read in commits.items()}

    async def _commits(self) -> dict[str, Commits]:
        listed = await self._groups.list_groups()
        live = {it.group_id: it for it in listed if it.state.lower() not in WITHOUT_MEMBERS}
        now_s = time.monotonic()
        is_due = self._found_s is None or now_s - self._found_s >= FIND_EVERY_S
        asked = sorted(live if is_due else self._readers & live.keys())
        slots, found = asyncio.Semaphore(TOGETHER), dict[str, Commits]()

        async def ask(group_id: str) -> None:
            is_share = live[group_id].group_type.lower() == SHARE
            async with slots:
                # A group may be gone by now, or hidden from us.
                with contextlib.suppress(KafkaPortError):
                    read = await self._read_of(group_id, is_share=is_share)
                    if read:
                        found[group_id] = read

        await asyncio.gather(*map(ask, asked))
        if is_due:
            self._readers, self._found_s = set(found), now_s
        return found

    async def _read_of(self, group_id: str, *, is_share: bool) -> Commits:
        if is_share:
            told = await self._groups.share_offsets(group_id)
            read = {key: it.start for key, it in told.items() if it.start is not None}
        else:
            read = dict(await self._groups.committed_offsets(group_id))
        return {key: offset for key, offset in read.items() if key in self._partitions}


def _reading(
    commits: Commits,
    at: tuple[
        Mapping[TopicPartition, OffsetAt],
        Mapping[TopicPartition, OffsetAt],
        Mapping[TopicPartition, OffsetAt],
    ],
) -> GroupReading:
    """`at`: where logs end, and their first records after two moments (-1: none is that new)."""
    ends, late, half = at

    def lacks(key: TopicPartition, since: Mapping[TopicPartition, OffsetAt]) -> bool:
        first = since[key].offset
        return commits[key] < (ends[key].offset if first < 0 else first)

    return GroupReading(
        lag=sum(max(ends[key].offset - offset, 0) for key, offset in commits.items()),
        is_late=any(lacks(key, late) for key in commits),
        is_caught_up=not any(lacks(key, half) for key in commits),
    )
