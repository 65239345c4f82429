"""A member of a consumer group: aiokafka's consumer with manual commits and our errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as WireTopicPartition
from aiokafka.errors import KafkaError

from control.kafka.connection.handshake import reason_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import explain_unreachable
from control.kafka.errors import UnreachableError
from control.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledRecords:
    """Records of one partition that a poll gave: how many, and the offset behind the last."""

    records: int
    next_offset: int


class GroupConsumer:
    """Reads topics as a group member, from the start where the group has no offset. Use as an
    async context manager."""

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        group_id: str,
        topics: tuple[str, ...],
        fetch_wait_ms: int = 1_000,
    ) -> None:
        self._settings = settings
        self._group_id = group_id
        self._topics = topics
        self._fetch_wait_ms = fetch_wait_ms
        self._consumer: Any = None

    async def __aenter__(self) -> GroupConsumer:
        self._consumer = AIOKafkaConsumer(
            *self._topics,
            bootstrap_servers=self._settings.bootstrap,
            client_id=self._settings.client_id,
            metadata_max_age_ms=self._settings.metadata_age_ms_max,
            group_id=self._group_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=self._fetch_wait_ms,
            **self._settings.security_options(),
        )
        try:
            await self._consumer.start()
        except (KafkaError, OSError, TimeoutError, AssertionError) as error:
            await self._consumer.stop()
            await explain_unreachable(self._settings)
            raise UnreachableError(
                f"group {self._group_id} could not be joined",
                reason=reason_of(error),
                next_step="check that the brokers run: `partiscope doctor`",
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    async def poll(
        self, *, wait_ms: int, records_max: int | None = None
    ) -> dict[TopicPartition, PolledRecords]:
        """Records that came, by partition; positions move on."""
        batches = await self._consumer.getmany(timeout_ms=wait_ms, max_records=records_max)
        return {
            TopicPartition(key.topic, key.partition): PolledRecords(
                records=len(records), next_offset=records[-1].offset + 1
            )
            for key, records in batches.items()
            if records
        }

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit; False when the group is rebalancing or the coordinator is away just now."""
        if not offsets:
            return True
        try:
            await self._consumer.commit(
                {WireTopicPartition(*key): offset for key, offset in offsets.items()}
            )
        except KafkaError:
            return False
        return True
