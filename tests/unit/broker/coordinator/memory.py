"""A one-node stand-in for replicas and metadata: real batches in memory, leadership at will."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID

from broker.log.log_validator import AppendInfo
from broker.metadata.delta import ReplayedBatch
from broker.metadata.image import (
    BrokerImage,
    ImageDelta,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from broker.metadata.metadata_service import MetadataService
from broker.metadata.records import BrokerEndpoint
from broker.protocol.records import iter_batch_headers
from tests.support.patience import WAIT_S

NODE_ID = 101


class MemoryLog:
    """Batches in a list, offsets assigned as a leader does."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, bytes]] = []
        self.log_start_offset = 0
        self.log_end_offset = 0

    def append(self, records: bytes) -> int:
        header, _ = next(iter_batch_headers(records))
        base = self.log_end_offset
        self.log_end_offset = base + header.last_offset_delta + 1
        stamped = base.to_bytes(8, "big") + records[8:]
        self.batches.append((base, self.log_end_offset, stamped))
        return base

    def read_bytes(
        self, offset: int, *, max_bytes: int, max_offset: int, min_one_batch: bool = True
    ) -> bytes:
        found = b""
        for _, end, data in self.batches:
            fits = not found or len(found) + len(data) <= max_bytes
            if end > offset and end <= max_offset and fits:
                found += data
        return found


@dataclass
class MemoryPartition:
    log: MemoryLog = field(default_factory=MemoryLog)
    is_leader: bool = True
    leader_epoch: int = 0


@dataclass
class MemoryReplicas:
    """Appends are acknowledged in the next turn of the loop, or fail with `error`."""

    partitions: dict[int, MemoryPartition] = field(default_factory=dict)
    error: Exception | None = None

    def partition(self, topic: str, partition: int) -> MemoryPartition | None:
        return self.partitions.get(partition)

    async def append_and_wait(
        self,
        topic: str,
        partition: int,
        records: bytes,
        *,
        acks: int = -1,
        timeout_ms: int = 5000,
        verification: object = None,
    ) -> AppendInfo:
        if self.error is not None:
            return AppendInfo(error=self.error)
        base = self.partitions.setdefault(partition, MemoryPartition()).log.append(records)
        await asyncio.sleep(0)
        return AppendInfo(base)


TOPIC_ID = UUID(int=7)
"""Id of the topic t, which has two partitions."""


class MemoryMetadata(MetadataService):
    """An image with topic t and some partitions of __consumer_offsets; the test moves leaders."""

    def __init__(self, *, partitions: int = 4) -> None:
        super().__init__(node_id=NODE_ID, cluster_id="memory")
        self.partitions = partitions
        self.restore(self._led_by(NODE_ID))

    def _led_by(self, leader: int) -> MetadataImage:
        topics = {
            "__consumer_offsets": _topic(
                "__consumer_offsets", UUID(int=1), self.partitions, leader
            ),
            "t": _topic("t", TOPIC_ID, 2, leader),
        }
        broker = BrokerImage(
            id=NODE_ID,
            epoch=1,
            endpoints=(BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092),),
            rack=None,
            fenced=False,
            incarnation_id=UUID(int=0),
        )
        return MetadataImage(
            cluster_id="memory",
            brokers={NODE_ID: broker},
            topics=topics,
            topics_by_id={topic.topic_id: topic for topic in topics.values()},
        )

    def lead(self, leader: int) -> None:
        """All partitions move to one leader."""
        topics = frozenset({"__consumer_offsets", "t"})
        changed = ImageDelta(topics_changed=topics)
        self.publish(ReplayedBatch(image=self._led_by(leader), changed=changed))

    def delete(self, topic: str) -> None:
        """A topic is deleted."""
        gone = self.image.topics[topic]
        topics = {name: image for name, image in self.image.topics.items() if name != topic}
        image, changed = replace(self.image, topics=topics), ImageDelta(topics_deleted=(gone,))
        self.publish(ReplayedBatch(image=image, changed=changed))


def _topic(name: str, topic_id: UUID, partitions: int, leader: int) -> TopicImage:
    images = {
        index: PartitionImage(
            topic_id=topic_id,
            topic=name,
            partition=index,
            replicas=(leader,),
            isr=(leader,),
            leader=leader,
            leader_epoch=1,
        )
        for index in range(partitions)
    }
    return TopicImage(name=name, topic_id=topic_id, partitions=images)


@dataclass
class ManualClock:
    """Both clocks at one value, moved by the test."""

    now_ms: int = 1_000_000

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.now_ms


async def until(condition: Callable[[], bool]) -> None:
    """Turn the loop until something holds; fails after five seconds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110  # what is awaited has no event of its own
            await asyncio.sleep(0.001)
