"""Keeps the state of a coordinator by partitions of its topic, as Kafka's CoordinatorRuntime does.

A node coordinates what the partitions hold that it leads. For each of them it keeps a shard: state
that the partition's records make. The runtime follows leadership, loads a shard by replaying its
log, and forgets it after resigning. While a partition is read its keys are answered with
COORDINATOR_LOAD_IN_PROGRESS, and after resigning with NOT_COORDINATOR.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from broker.background import Slices, Tasks, log_failure
from broker.coordinator.config import partition_for
from broker.coordinator.errors import CoordinatorError
from broker.log.partition_log import PartitionLog
from broker.metadata.image import MetadataImage
from broker.metadata.metadata_service import MetadataService
from broker.protocol.control_records import read_marker
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import BatchHeader, Record, iter_batch_headers, iter_records
from broker.replication.replica_manager import ReplicaManager

_LOG = logging.getLogger(__name__)
_LEADERSHIP_POLL_S: Final = 0.02
_LOAD_RETRY_S: Final = 1.0
_LOAD_STEP_BYTES: Final = 32_768
"""Read between two turns of the event loop: some milliseconds of work on small records."""


class CoordinatorShard(Protocol):
    """State of one partition; made anew, from the start of the log, for each term of leadership."""

    def replay(self, record: Record, producer_id: int | None) -> None:
        """Account for one record; they come in the order of the log. One of a transaction has its
        producer's id, and counts when its marker says so."""

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """The producer's transaction ended here."""

    async def on_loaded(self) -> None:
        """All records were replayed: once it returns requests are answered, if this node still
        leads the partition."""

    def on_unloaded(self) -> None:
        """This node resigned: answer those who wait, and end all work. Called only after
        `on_loaded`, at once where this node resigned before that returned."""


S = TypeVar("S", bound=CoordinatorShard)


@dataclass(slots=True, kw_only=True, eq=False)
class _Context(Generic[S]):
    """A partition that this node leads, with its shard."""

    index: int
    shard: S
    is_loaded: bool = False


class CoordinatorRuntime(Generic[S]):
    """Follows the metadata; owns the shard of every partition of `topic` that this node leads."""

    def __init__(
        self,
        topic: str,
        build_shard: Callable[[int], S],
        replicas: ReplicaManager,
        metadata: MetadataService,
        *,
        node_id: int,
        load_buffer_bytes: int,
    ) -> None:
        self._topic = topic
        self._build_shard = build_shard
        self._replicas = replicas
        self._metadata = metadata
        self._node_id = node_id
        self._step_bytes = min(load_buffer_bytes, _LOAD_STEP_BYTES)
        self._led: dict[int, _Context[S]] = {}
        self._loads = Tasks(f"loading of {topic}", log_failure)

    def start(self) -> None:
        """Follow the metadata from now on."""
        self._metadata.subscribe(lambda _old, new, _changed: self._follow(new))
        self._follow(self._metadata.image)

    async def stop(self) -> None:
        """Resign everywhere and end the loads."""
        for index in list(self._led):
            self._resign(index)
        await self._loads.stop()

    def loaded(self) -> Iterator[S]:
        """Shards that answer now."""
        return (context.shard for context in self._led.values() if context.is_loaded)

    @property
    def is_loading(self) -> bool:
        """Whether some partition is still being read."""
        return any(not context.is_loaded for context in self._led.values())

    def locate(self, key: str) -> S | CoordinatorError:
        """The loaded shard that keeps a group or transaction, or what to tell the client."""
        topic = self._metadata.image.topics.get(self._topic)
        if topic is None:
            return CoordinatorError.NOT_COORDINATOR
        context = self._led.get(partition_for(key, len(topic.partitions)))
        if context is None:
            return CoordinatorError.NOT_COORDINATOR
        return context.shard if context.is_loaded else CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS

    def _follow(self, image: MetadataImage) -> None:
        topic = image.topics.get(self._topic)
        partitions = {} if topic is None else topic.partitions
        for index in list(self._led):
            if index not in partitions or partitions[index].leader != self._node_id:
                self._resign(index)
        for index, view in partitions.items():
            if view.leader == self._node_id:
                self._lead(index)

    def _lead(self, index: int) -> None:
        if index in self._led:
            return  # elected again without anybody else in between: the state here is the newest
        context = _Context(index=index, shard=self._build_shard(index))
        self._led[index] = context
        self._loads.keep(partial(self._load, context))

    def reload(self, index: int) -> None:
        """Read a shard anew whose changes could not be written: its log tells what holds."""
        if index in self._led:
            self._resign(index)
            self._lead(index)

    def _resign(self, index: int) -> None:
        context = self._led.pop(index)
        if context.is_loaded:
            context.shard.on_unloaded()
        context.is_loaded = False

    def _is_led(self, context: _Context[S]) -> bool:
        return self._led.get(context.index) is context

    async def _load(self, context: _Context[S]) -> None:
        shard = None
        while self._is_led(context) and shard is None:
            local = self._replicas.partition(self._topic, context.index)
            if local is None or not local.is_leader:
                await asyncio.sleep(_LEADERSHIP_POLL_S)
                continue
            shard = await self._try_read(local.log, context.index)
        if shard is None or not self._is_led(context):
            return
        await shard.on_loaded()
        if self._is_led(context):
            context.shard = shard
            context.is_loaded = True
        else:
            shard.on_unloaded()  # resigned meanwhile: it must not act beside its successor

    async def _try_read(self, log: PartitionLog, index: int) -> S | None:
        try:
            return await self._read(log, self._build_shard(index))
        except Exception:  # noqa: BLE001  # whatever is wrong, the node and its partitions go on
            _LOG.exception("loading %s-%d failed, trying again", self._topic, index)
            await asyncio.sleep(_LOAD_RETRY_S)
            return None

    async def _read(self, log: PartitionLog, shard: S) -> S:
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            chunk = log.read_bytes(offset, max_bytes=self._step_bytes, max_offset=end)
            next_offset = await replay_chunk(shard, chunk, offset)
            if next_offset == offset:
                break
            offset = next_offset
        return shard


async def replay_chunk(shard: CoordinatorShard, chunk: bytes, offset: int) -> int:
    """Apply the records at or past `offset`; returns the offset to read next. What a damaged batch
    holds is left out: an older state is better than a partition without a coordinator. One batch
    may hold thousands; others are served in between."""
    view, slices = memoryview(chunk), Slices()
    for header, position in iter_batch_headers(view):
        batch = view[position : position + header.size_bytes]
        try:
            if header.is_control:
                _replay_marker(shard, header, batch)
                continue
            producer_id = header.producer_id if header.is_transactional else None
            for record in iter_records(batch):
                if record.offset >= offset:
                    shard.replay(record, producer_id)
                await slices.pause()
        except MalformedRecordsError as error:
            _LOG.error(
                "%s: up to %d records of offsets %d to %d are left out: %s",
                type(shard).__name__,
                header.records_count,
                header.base_offset,
                header.last_offset,
                error,
            )
        finally:
            offset = max(offset, header.last_offset + 1)
    await asyncio.sleep(0)  # a long log is many chunks
    return offset


def _replay_marker(shard: CoordinatorShard, header: BatchHeader, batch: memoryview) -> None:
    marker = read_marker(batch)
    if marker is not None and header.producer_id >= 0:
        shard.replay_marker(header.producer_id, is_commit=marker.is_commit)
