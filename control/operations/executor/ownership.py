"""One executor at a time: whoever the group assigns the operations topic's only partition.

Alerts are delivered by one process at a time in the same way, by the alerts topic.

Membership is the lock. A second executor joins the same group, gets no partition and waits; when
the owner dies, its session ends within SESSION_TIMEOUT_MS and the next one takes over. `hold`
commits an offset, which the coordinator accepts only from the present generation: an executor
that was paused longer than its session learns so before it touches anything (it is fenced).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, OffsetAndMetadata
from aiokafka import TopicPartition as WireTopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import UnreachableError
from control.model.ids import TopicPartition
from control.move.commands import Command
from control.operations.bus.topics import COMMANDS
from control.operations.bus.unreadable import Unreadable
from control.operations.errors import FencedError

GROUP_ID: Final = "__partiscope_executor"
SESSION_TIMEOUT_MS: Final = 6_000
HEARTBEAT_MS: Final = 1_000
POLL_MS: Final = 500


class Ownership:
    """Membership in the executors' group. Use as an async context manager."""

    def __init__(
        self,
        settings: KafkaSettings,
        unreadable: Unreadable,
        *,
        partition: TopicPartition = COMMANDS,
        group_id: str = GROUP_ID,
    ) -> None:
        self._settings = settings
        self._partition = WireTopicPartition(*partition)
        self._group_id = group_id
        self._unreadable = unreadable
        self._owned = asyncio.Event()
        self._holding = asyncio.Lock()
        self._consumer: Any = None

    async def __aenter__(self) -> Ownership:
        # The sticky assignor leaves the partition with its owner when another executor joins.
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._settings.bootstrap,
            client_id=f"{self._settings.client_id}-executor",
            metadata_max_age_ms=self._settings.metadata_age_ms_max,
            group_id=self._group_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=(StickyPartitionAssignor,),
            **self._settings.security_options(),
        )
        self._consumer.subscribe(
            topics=[self._partition.topic], listener=_Listener(self._partition, self._owned)
        )
        try:
            await self._consumer.start()
        except (KafkaError, OSError, TimeoutError, AssertionError) as error:
            await self._consumer.stop()
            raise UnreachableError(
                f"the bus at {self._settings.bootstrap} did not answer",
                reason=str(error) or type(error).__name__,
                next_step="check that the bundled cluster runs: `partiscope doctor`",
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    @property
    def is_owner(self) -> bool:
        """Whether the group gave us the partition, as far as we know."""
        return self._owned.is_set()

    async def wait_until_owner(self, timeout_s: float) -> bool:
        """Whether we became the owner within the time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._owned.wait()
        except TimeoutError:
            return False
        return True

    async def hold(self) -> None:
        """Prove that we still own the operations.

        :raises FencedError: we do not.
        """
        if not self.is_owner:
            raise FencedError("the executors' group is rebalancing")
        try:
            async with self._holding:
                position = await self._consumer.position(self._partition)
                await self._consumer.commit({self._partition: OffsetAndMetadata(position, "")})
        except (KafkaError, OSError, TimeoutError, RuntimeError) as error:
            raise FencedError(str(error) or type(error).__name__) from error
        if not self.is_owner:
            raise FencedError("the executors' group is rebalancing")

    def read_from(self, offset: int) -> None:
        """Continue `next_commands` at an offset.

        :raises FencedError: the partition is not ours.
        """
        try:
            self._consumer.seek(self._partition, offset)
        except (KafkaError, RuntimeError) as error:
            raise FencedError(str(error)) from error

    async def next_commands(self) -> list[Command]:
        """Commands that came since, after at most POLL_MS; unreadable records are left out.

        Their place is committed, so that the executors' group has no lag.

        :raises FencedError: we do not own them.
        """
        try:
            batches = await self._consumer.getmany(timeout_ms=POLL_MS)
        except KafkaError as error:
            raise FencedError(str(error) or type(error).__name__) from error
        commands: list[Command] = []
        for records in batches.values():
            for record in records:
                if (command := self._unreadable.command(record)) is not None:
                    commands.append(command)
        if batches:
            await self.hold()
        return commands


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Sets and clears the flag as the partition comes and goes."""

    def __init__(self, partition: WireTopicPartition, owned: asyncio.Event) -> None:
        self._partition = partition
        self._owned = owned

    async def on_partitions_revoked(self, revoked: Iterable[WireTopicPartition]) -> None:
        self._owned.clear()

    async def on_partitions_assigned(self, assigned: Iterable[WireTopicPartition]) -> None:
        if self._partition in assigned:
            self._owned.set()
