"""The group coordinator of one node: its parts, put together and kept going.

`membership` runs the groups, `offsets` keeps what they committed, `directory` shows both;
`partitions` decides which of them this node answers for. Everything that must outlive the node
is a record in __consumer_offsets.
"""

import asyncio
import logging
from typing import Any

from broker.clock import Clock
from broker.groups.config import GroupConfig
from broker.groups.directory import GroupDirectory
from broker.groups.engine import GroupEngine
from broker.groups.group_log import GroupLog
from broker.groups.membership import Membership
from broker.groups.offset_manager import OffsetManager
from broker.groups.partitions import OffsetsPartitions
from broker.groups.ports import MetadataPort, ReplicaPort

_LOG = logging.getLogger(__name__)


class GroupCoordinator:
    """Assembles the parts; `start` needs a running loop."""

    def __init__(
        self,
        replicas: ReplicaPort,
        metadata: MetadataPort,
        clock: Clock,
        config: GroupConfig,
        *,
        node_id: int,
    ) -> None:
        self.config = config
        self._metadata = metadata
        self._clock = clock
        self.partitions = OffsetsPartitions(replicas, metadata, clock, config, node_id=node_id)
        log = GroupLog(replicas, clock, config)
        self.engine = GroupEngine(self.partitions, log, clock)
        self.membership = Membership(self.partitions, self.engine, config)
        self.offsets = OffsetManager(self.partitions, self.engine, log, config)
        self.directory = GroupDirectory(self.partitions)
        self._expiry: asyncio.TimerHandle | None = None
        self._chores: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Follow the metadata, load what this node leads, expire offsets from time to time."""
        self._metadata.subscribe(self._handle_metadata)
        self.partitions.start()
        self._schedule_expiry()

    async def stop(self) -> None:
        """Answer everybody who waits, then end all background work."""
        if self._expiry is not None:
            self._expiry.cancel()
        await self.partitions.stop()
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        await self.engine.stop()

    def _handle_metadata(self, _old: Any, new: Any, changed: Any) -> None:
        gone = frozenset(topic.name for topic in changed.topics_deleted)
        gone = frozenset(name for name in gone if name not in new.topics)
        if gone:
            self._run_chore(self.offsets.forget_topics(gone))

    def _schedule_expiry(self) -> None:
        interval_s = self.config.offsets_retention_check_interval_ms / 1000
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(interval_s, self._handle_expiry)

    def _handle_expiry(self) -> None:
        self._run_chore(self.offsets.expire(self._clock))
        self._schedule_expiry()

    def _run_chore(self, work: Any) -> None:
        chore = asyncio.get_running_loop().create_task(work)
        self._chores.add(chore)
        chore.add_done_callback(self._end_chore)

    def _end_chore(self, chore: asyncio.Task[Any]) -> None:
        self._chores.discard(chore)
        if not chore.cancelled() and chore.exception() is not None:
            _LOG.error("a chore of the group coordinator failed", exc_info=chore.exception())
