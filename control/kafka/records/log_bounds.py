"""Where the logs of partitions begin and end, also where some of them do not tell."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.together import together
from control.kafka.errors import KafkaPortError
from control.kafka.ports import OffsetAt, OffsetSpec
from control.kafka.records.record import Unread
from control.model.ids import TopicPartition

_NO_LEADER: Final = "it has no leader"
_UNKNOWN: Final = "it does not exist"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogExtent:
    """Where a partition's log begins and ends; `stable` is its last stable offset."""

    first: int
    end: int
    stable: int


class LogExtents:
    """Asks the leaders of one cluster."""

    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    async def tolerant(
        self, keys: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, LogExtent], list[Unread]]:
        """Where the logs begin and end, and which partitions do not tell.

        :raises KafkaPortError: none of them does.
        """
        wanted = list(keys)
        names = sorted({key.topic for key in wanted})
        topics = await self._admin.topics(names, leaves_out_unknown=True)
        leaders = {p.key: p.leader for topic in topics for p in topic.partitions}
        led = {key for key, leader in leaders.items() if leader >= 0}
        unread = [
            Unread(partition=key, reason=_NO_LEADER if key in leaders else _UNKNOWN)
            for key in wanted
            if key not in led
        ]
        if len(unread) == len(wanted):
            # As long as there is nothing else to show, an election is waited for.
            unread, led = [], set(wanted)
        first, no_first = await self.list_offsets(
            [key for key in wanted if key in led], OffsetSpec.EARLIEST
        )
        end, no_end = await self.list_offsets(first, OffsetSpec.LATEST)
        stable, no_stable = await self.list_offsets(end, OffsetSpec.LATEST, is_committed=True)
        extents = {
            key: LogExtent(first=first[key].offset, end=end[key].offset, stable=at.offset)
            for key, at in stable.items()
        }
        return extents, [*unread, *no_first, *no_end, *no_stable]

    async def known(
        self, keys: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, LogExtent], dict[TopicPartition, str]]:
        """As `tolerant`, also where none of them tells; and why the others do not."""
        wanted = list(keys)
        try:
            extents, unread = await self.tolerant(wanted) if wanted else ({}, [])
        except KafkaPortError as error:
            return {}, dict.fromkeys(wanted, str(error))
        return extents, {it.partition: it.reason for it in unread}

    async def strict(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, LogExtent]:
        """As ``_extents``, of all of them.

        :raises KafkaPortError: one of them does not tell.
        """
        wanted = list(keys)
        list_offsets = self._admin.offsets.list_offsets
        async with together() as group:
            asked = (
                group.create_task(list_offsets(wanted, OffsetSpec.EARLIEST)),
                group.create_task(list_offsets(wanted, OffsetSpec.LATEST)),
                group.create_task(list_offsets(wanted, OffsetSpec.LATEST, is_committed=True)),
            )
        first, end, stable = (answer.result() for answer in asked)
        return {
            key: LogExtent(first=first[key].offset, end=end[key].offset, stable=stable[key].offset)
            for key in wanted
        }

    async def list_offsets(
        self, keys: Iterable[TopicPartition], at: int, *, is_committed: bool = False
    ) -> tuple[dict[TopicPartition, OffsetAt], list[Unread]]:
        """As the admin does, but one by one where it fails.

        :raises KafkaPortError: all of them fail.
        """
        wanted = list(keys)
        list_offsets = self._admin.offsets.list_offsets
        try:
            return await list_offsets(wanted, at, is_committed=is_committed), []
        except KafkaPortError:
            if len(wanted) < 2:
                raise
        answers = await asyncio.gather(
            *(list_offsets([key], at, is_committed=is_committed) for key in wanted),
            return_exceptions=True,
        )
        found: dict[TopicPartition, OffsetAt] = {}
        errors: dict[TopicPartition, KafkaPortError] = {}
        for key, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, KafkaPortError):
                errors[key] = answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found |= answer
        if not found:
            raise next(iter(errors.values()))
        return found, [Unread(partition=key, reason=str(error)) for key, error in errors.items()]
