"""New replicas; one topic may bring thousands at once.

Making a directory and its files takes the disk a fraction of a millisecond, or fifty while it is
busy. Threads do that, so that this node answers votes, heartbeats and fetches meanwhile; what is
ready is taken in as the image then says.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final
from uuid import UUID

from broker.background import Slices, Tasks, attempt, log_failure
from broker.log.errors import LogError
from broker.log.load.new_log_directory import discard_directory, prepare_directory
from broker.log.log_manager import LogManager
from broker.log.names import check_topic_partition, partition_directory_name
from broker.metadata.image import PartitionImage
from broker.metadata.metadata_service import MetadataService

AT_ONCE_MAX: Final = 16
"""So few are made within the call."""
TOGETHER_MAX: Final = 32
_THREADS: Final = 4

Key = tuple[str, int]
"""Topic and partition."""

log = logging.getLogger(__name__)


class ReplicaCreation:
    """Each is taken in once, in order; who waits may be added again without effect."""

    def __init__(
        self,
        *,
        node_id: int,
        logs: LogManager,
        metadata: MetadataService,
        take_in: Callable[[PartitionImage], None],
    ) -> None:
        """``take_in`` is called in the event loop, with the newest view of a replica."""
        self._node_id = node_id
        self._logs = logs
        self._metadata = metadata
        self._take_in = take_in
        self._waiting: dict[Key, None] = {}
        self._tasks = Tasks("creation of replicas", log_failure)
        self._is_closed = False

    def add(self, keys: Sequence[Key]) -> None:
        """Behind those that wait already."""
        if self._is_closed:
            return
        if len(keys) <= AT_ONCE_MAX and not self._waiting:
            for key in keys:
                self._create(key)
            return
        self._waiting |= dict.fromkeys(keys)
        if not self._tasks:
            self._tasks.keep(self._run)

    async def close(self) -> None:
        """Take in nothing more; what a thread prepares is waited for."""
        self._is_closed = True
        self._waiting.clear()
        await self._tasks.wait(None)

    async def _run(self) -> None:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="create") as threads:
            while self._waiting:
                await self._next(threads)

    async def _next(self, threads: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        keys = list(islice(self._waiting, TOGETHER_MAX))
        prepared = await asyncio.gather(
            *(loop.run_in_executor(threads, self._prepare, key) for key in keys)
        )
        slices = Slices()
        for key, topic_id in zip(keys, prepared, strict=True):
            if key in self._waiting:
                del self._waiting[key]
                attempt("creation of replicas", self._create, key, topic_id)
            await slices.pause()

    def _prepare(self, key: Key) -> UUID | None:
        """In a thread. The topic that it was prepared for. What the disk refuses is told when the
        replica is taken in: it refuses it again."""
        view = self._wanted(key)
        try:
            if view is not None:
                prepare_directory(self._directory(key), view.topic_id)
        except LogError as error:
            log.debug("%s", error)
        return None if view is None else view.topic_id

    def _create(self, key: Key, topic_id: UUID | None = None) -> None:
        """Take in a replica, unless its topic is gone or it has moved away meanwhile. `topic_id`:
        what was prepared; another topic may have come in the place of that one."""
        view = self._wanted(key)
        is_for_another = view is None or topic_id not in (None, view.topic_id)
        if is_for_another and self._logs.log(*key) is None:
            try:
                discard_directory(self._directory(key))
            except LogError as error:
                log.error("%s", error)
        if view is not None:
            self._take_in(view)

    def _wanted(self, key: Key) -> PartitionImage | None:
        topic = self._metadata.image.topics.get(key[0])
        view = None if topic is None else topic.partitions.get(key[1])
        return None if view is None or self._node_id not in view.replicas else view

    def _directory(self, key: Key) -> str:
        check_topic_partition(*key)
        return f"{self._logs.directory}/{partition_directory_name(*key)}"
