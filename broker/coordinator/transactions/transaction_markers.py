"""Markers on their way: into the partitions that this node leads, and to the leaders of others."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from broker.clock import Clock
from broker.coordinator.transactions.transaction_metadata import Producer, TopicPartition
from broker.log.errors import CoordinatorFencedError, InvalidProducerEpochError
from broker.metadata.image import NO_LEADER
from broker.metadata.metadata_service import MetadataService
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol import codec
from broker.protocol.control_records import Marker, build_marker
from broker.replication.replica_manager import ReplicaManager

WRITE_TXN_MARKERS: Final = 27
WRITE_TXN_MARKERS_VERSION: Final = 1
TIMEOUT_MS: Final = 5_000
AT_ONCE_MAX: Final = 100
"""Markers that are appended at a stretch: some 5 ms."""
RETRY_S_MIN: Final = 0.02
RETRY_S_MAX: Final = 1.0
_FENCED: Final = (ErrorCode.invalid_producer_epoch, ErrorCode.transaction_coordinator_fenced)


class PeerPort(Protocol):
    """Requests to another broker."""

    async def send(self, api_key: int, api_version: int, message: Any) -> Any:
        """The response message.

        :raises OSError: there is no answer.
        """


ToBroker = Callable[[int], PeerPort | None]
"""The way to a broker; None where it is not registered."""
OnEnd = Callable[[int, int, bool], None]
"""A partition of __consumer_offsets, a producer id, and whether its offsets are committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTransaction:
    """The producer of a transaction, and the marker for each of its partitions."""

    producer: Producer
    marker: Marker


class Outcome(Enum):
    """The end of one attempt to write a marker."""

    DONE = "written"
    RETRY = "to be sent again"
    FENCED = "another coordinator has gone on"


class MarkerWriter:
    """Writes markers into partitions that this node leads."""

    def __init__(self, replicas: ReplicaManager, clock: Clock, on_end_of_offsets: OnEnd) -> None:
        self._replicas = replicas
        self._clock = clock
        self._on_end_of_offsets = on_end_of_offsets

    async def write(
        self, ended: EndedTransaction, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Exception | None]:
        """Append to so many at once that others are served in between; answers when every marker
        is replicated, or why it is not."""
        keys, found = list(partitions), dict[TopicPartition, Exception | None]()
        for start in range(0, len(keys), AT_ONCE_MAX):
            some = keys[start : start + AT_ONCE_MAX]
            errors = await asyncio.gather(*(self._write(ended, *key) for key in some))
            found.update(zip(some, errors, strict=True))
        return found

    async def _write(self, ended: EndedTransaction, topic: str, partition: int) -> Exception | None:
        batch = build_marker(*ended.producer, ended.marker, timestamp_ms=self._clock.wall_ms())
        appended = await self._replicas.append_and_wait(
            topic, partition, batch, acks=-1, timeout_ms=TIMEOUT_MS
        )
        if appended.error is None and topic == OFFSETS_TOPIC:
            self._on_end_of_offsets(partition, ended.producer.id, ended.marker.is_commit)
        return appended.error


class MarkerChannel:
    """Sends the markers of a transaction until each of its partitions has one."""

    def __init__(
        self, writer: MarkerWriter, metadata: MetadataService, to_broker: ToBroker, *, node_id: int
    ) -> None:
        self._writer = writer
        self._metadata = metadata
        self._to_broker = to_broker
        self._node_id = node_id

    async def deliver(
        self,
        ended: EndedTransaction,
        partitions: Iterable[TopicPartition],
        is_wanted: Callable[[], bool],
    ) -> bool:
        """Whether all are written; False when fenced, or not wanted any more."""
        waiting, retry_s = set(partitions), RETRY_S_MIN
        while True:
            by_leader = self._by_leader(waiting)
            rounds = (self._send(leader, ended, keys) for leader, keys in by_leader.items())
            outcomes: dict[TopicPartition, Outcome] = {}
            for answered in await asyncio.gather(*rounds):
                outcomes |= answered
            if Outcome.FENCED in outcomes.values():
                return False
            known = {key for keys in by_leader.values() for key in keys}
            waiting = {key for key in known if outcomes.get(key) is not Outcome.DONE}
            if not waiting:
                return True
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, RETRY_S_MAX)
            if not is_wanted():
                return False

    def _by_leader(self, waiting: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Partitions of topics that were deleted need no marker any more."""
        image = self._metadata.image
        found: dict[int, list[TopicPartition]] = {}
        for key in sorted(waiting):
            partition = image.partition(*key)
            if partition is not None:
                found.setdefault(partition.leader, []).append(key)
        return found

    async def _send(
        self, leader: int, ended: EndedTransaction, keys: list[TopicPartition]
    ) -> Mapping[TopicPartition, Outcome]:
        if leader == self._node_id:
            errors = await self._writer.write(ended, keys)
            return {key: _outcome(error) for key, error in errors.items()}
        peer = None if leader == NO_LEADER else self._to_broker(leader)
        if peer is None:
            return {}
        message = build_request(ended, keys)
        try:
            answer = await peer.send(WRITE_TXN_MARKERS, WRITE_TXN_MARKERS_VERSION, message)
        except OSError:
            return {}
        return {
            (str(topic.name), int(partition.partition_index)): _outcome_of(partition.error_code)
            for marker in answer.markers
            for topic in marker.topics
            for partition in topic.partitions
        }


def build_request(ended: EndedTransaction, keys: Iterable[TopicPartition]) -> Any:
    """WriteTxnMarkers of one transaction."""
    topics: dict[str, list[int]] = {}
    for topic, partition in keys:
        topics.setdefault(topic, []).append(partition)
    return codec.build_request(
        WRITE_TXN_MARKERS,
        WRITE_TXN_MARKERS_VERSION,
        markers=[
            {
                "producer_id": ended.producer.id,
                "producer_epoch": ended.producer.epoch,
                "transaction_result": ended.marker.is_commit,
                "coordinator_epoch": ended.marker.coordinator_epoch,
                "topics": [
                    {"name": name, "partition_indexes": indexes} for name, indexes in topics.items()
                ],
            }
        ],
    )


def _outcome(error: Exception | None) -> Outcome:
    if error is None:
        return Outcome.DONE
    is_fenced = isinstance(error, InvalidProducerEpochError | CoordinatorFencedError)
    return Outcome.FENCED if is_fenced else Outcome.RETRY


def _outcome_of(code: ErrorCode) -> Outcome:
    if code is ErrorCode.none:
        return Outcome.DONE
    return Outcome.FENCED if code in _FENCED else Outcome.RETRY
