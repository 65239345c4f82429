"""Getting a round of samples into the metrics topic, whoever leads its partition."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.handlers.services import NodeServices
from broker.metadata.image import MetadataImage, PartitionImage
from broker.metadata.records import BrokerEndpoint
from broker.metrics.samples import pick_partition
from broker.metrics_schema import METRICS_TOPIC
from broker.protocol import codec
from broker.protocol.compression import ZSTD
from broker.protocol.records import NewRecord, build_batch
from broker.raft.ports import Peer

CREATE_TOPICS: Final = 19
CREATE_TOPICS_VERSION: Final = 7
PRODUCE: Final = 0
PRODUCE_VERSION: Final = 9
ACKS: Final = 1
WRITE_TIMEOUT_MS: Final = 2_000
BATCH_BYTES_MAX: Final = 900_000
"""Of the plain records of a batch, below message.max.bytes' default; a larger record is alone."""
METRICS_PARTITIONS: Final = 3
METRICS_REPLICAS_MAX: Final = 3
METRICS_CONFIGS: Final = (
    ("retention.ms", "3600000"),
    ("segment.ms", "600000"),
    ("segment.bytes", "67108864"),
)

Connect = Callable[[BrokerEndpoint], Peer]
"""An address -> a connection to another broker."""


class DeliveryError(Exception):
    """A round did not reach the metrics topic; the text says why."""


class MetricsDelivery:
    """Writes rounds with acks=1: here when this node leads the partition, else by Produce."""

    def __init__(self, node: NodeServices, node_id: int, connect: Connect) -> None:
        self._node = node
        self._node_id = node_id
        self._connect = connect
        self._partition: int | None = None
        self._peer: Peer | None = None
        self._address: BrokerEndpoint | None = None

    async def close(self) -> None:
        """End the connection to the last remote leader."""
        if self._peer is not None:
            await self._peer.close()

    def has_topic(self) -> bool:
        """Whether the metrics topic exists."""
        return METRICS_TOPIC in self._image().topics

    async def maybe_create_topic(self, *, expected_brokers: int) -> None:
        """Create the metrics topic when it is this node's turn to.

        The active broker with the lowest id does it, once `expected_brokers` (at most the wanted
        replicas) are there, so that the topic starts out fully replicated.

        Raises:
            DeliveryError: the controller refuses.
            OSError: no controller answers.
        """
        active = [broker.id for broker in self._image().active_brokers()]
        replicas = min(METRICS_REPLICAS_MAX, len(active))
        if not active or active[0] != self._node_id:
            return
        if replicas < min(METRICS_REPLICAS_MAX, expected_brokers):
            return
        message = codec.build_request(
            CREATE_TOPICS,
            CREATE_TOPICS_VERSION,
            topics=[_topic_to_create(replicas)],
            timeout=WRITE_TIMEOUT_MS,
        )
        answer = await self._node.controller.submit(CREATE_TOPICS, CREATE_TOPICS_VERSION, message)
        error = answer.topics[0].error_code
        if error not in {ErrorCode.none, ErrorCode.topic_already_exists}:
            raise DeliveryError(f"{METRICS_TOPIC} was not created: {error.name}")

    async def write(self, values: Sequence[bytes], *, round_ms: int) -> None:
        """Append the records of one round, in order.

        Raises:
            DeliveryError: no leader, or the leader refuses.
            OSError: the leader cannot be reached.
        """
        topic = self._image().topics[METRICS_TOPIC]
        self._partition = pick_partition(topic.partitions, self._node_id, self._partition)
        target = topic.partitions[self._partition]
        # Timestamps say when records are sent: the job estimates this broker's clock by them.
        for batch in build_batches(values, max(round_ms, self._node.clock.wall_ms())):
            if target.leader == self._node_id:
                await self._write_here(target, batch)
            else:
                await self._write_there(target, batch)

    async def _write_here(self, target: PartitionImage, batch: bytes) -> None:
        result = await self._node.replicas.append_and_wait(
            METRICS_TOPIC, target.partition, batch, acks=ACKS, timeout_ms=WRITE_TIMEOUT_MS
        )
        if result.error is not None:
            raise DeliveryError(f"{METRICS_TOPIC}: {result.error!r}")

    async def _write_there(self, target: PartitionImage, batch: bytes) -> None:
        peer = await self._peer_of(target.leader)
        partition = {"index": target.partition, "records": batch}
        message = codec.build_request(
            PRODUCE,
            PRODUCE_VERSION,
            acks=ACKS,
            timeout=WRITE_TIMEOUT_MS,
            topic_data=[{"name": METRICS_TOPIC, "partition_data": [partition]}],
        )
        answer = await peer.send(
            PRODUCE, PRODUCE_VERSION, message, timeout_s=WRITE_TIMEOUT_MS / 1000
        )
        error = answer.responses[0].partition_responses[0].error_code
        if error is not ErrorCode.none:
            raise DeliveryError(f"{METRICS_TOPIC} at {target.leader}: {error.name}")

    async def _peer_of(self, leader: int) -> Peer:
        broker = self._image().brokers.get(leader)
        address = (
            None if broker is None else broker.endpoint(self._node.config.listeners.inter_broker)
        )
        if broker is None or broker.fenced or address is None:
            raise DeliveryError(f"the leader of {METRICS_TOPIC} is {leader}, which is not there")
        if self._peer is None or self._address != address:
            await self.close()
            self._peer, self._address = self._connect(address), address
        return self._peer

    def _image(self) -> MetadataImage:
        image: MetadataImage = self._node.metadata.image
        return image


def build_batches(values: Sequence[bytes], round_ms: int) -> Iterator[bytes]:
    """The records of a round as compressed batches of bounded size."""
    records: list[NewRecord] = []
    size_bytes = 0
    for value in values:
        if records and size_bytes + len(value) > BATCH_BYTES_MAX:
            yield build_batch(records, codec=ZSTD)
            records, size_bytes = [], 0
        records.append(NewRecord(value=value, timestamp=round_ms))
        size_bytes += len(value)
    if records:
        yield build_batch(records, codec=ZSTD)


def _topic_to_create(replicas: int) -> dict[str, Any]:
    return {
        "name": METRICS_TOPIC,
        "num_partitions": METRICS_PARTITIONS,
        "replication_factor": replicas,
        "configs": [{"name": name, "value": value} for name, value in METRICS_CONFIGS],
    }
