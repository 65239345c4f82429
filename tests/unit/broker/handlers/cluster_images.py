"""Images of small clusters, and a node that has one."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.clock import SystemClock
from broker.config.broker_config import BrokerConfig
from broker.handlers.services import NodeServices, Request
from broker.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker.metadata.metadata_service import MetadataService
from broker.metadata.records import BrokerEndpoint
from broker.protocol import codec
from broker.protocol.request_context import RequestContext

INCARNATION = UUID(int=1)


def broker_image(broker_id: int, *, fenced: bool = False) -> BrokerImage:
    """Broker 101 listens on 127.0.0.1:9101 in rack r101, and so on."""
    return BrokerImage(
        id=broker_id,
        epoch=broker_id,
        endpoints=(BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9000 + broker_id),),
        rack=f"r{broker_id}",
        fenced=fenced,
        incarnation_id=INCARNATION,
    )


def topic_image(name: str, leaders: list[int], *, number: int = 1) -> TopicImage:
    """A topic with one partition per leader, replicated on 101, 102, 103."""
    topic_id = UUID(int=number)
    return TopicImage(
        name=name,
        topic_id=topic_id,
        partitions={
            partition: PartitionImage(
                topic_id=topic_id,
                topic=name,
                partition=partition,
                replicas=(101, 102, 103),
                isr=(101, 102),
                leader=leader,
                leader_epoch=7,
            )
            for partition, leader in enumerate(leaders)
        },
    )


def cluster_image(*topics: TopicImage, fenced: tuple[int, ...] = ()) -> MetadataImage:
    """Brokers 101-103, 102 the active controller."""
    return MetadataImage(
        cluster_id="cluster",
        controller_id=102,
        brokers={id_: broker_image(id_, fenced=id_ in fenced) for id_ in (101, 102, 103)},
        topics={topic.name: topic for topic in topics},
        topics_by_id={topic.topic_id: topic for topic in topics},
    )


def node_with(image: MetadataImage, controller: Any = None, **properties: str) -> NodeServices:
    """A node that knows `image`."""
    config = BrokerConfig.from_properties(
        {
            "node.id": "101",
            "cluster.id": "cluster",
            "listeners": "PLAINTEXT://127.0.0.1:9101",
            "controller.quorum.voters": "101@127.0.0.1:19101",
            "log.dirs": "/nowhere",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
    )
    metadata = MetadataService(node_id=101, cluster_id="cluster")
    metadata._image = image
    absent: dict[str, Any] = dict.fromkeys(
        ("replicas", "logs", "groups", "producer_ids", "transactions")
    )
    return NodeServices(
        config=config, clock=SystemClock(), metadata=metadata, controller=controller, **absent
    )


def add_topic(node: NodeServices, topic: TopicImage) -> None:
    """As if its creation had been replayed."""
    image = node.metadata.image
    node.metadata._image = replace(
        image,
        topics={**image.topics, topic.name: topic},
        topics_by_id={**image.topics_by_id, topic.topic_id: topic},
    )


def request_of(api_key: int, version: int, *, through: str = "PLAINTEXT", **fields: Any) -> Request:
    """A request as it comes from a client's socket, through the listener of this name."""
    message = codec.build_request(api_key, version, **fields)
    frame = memoryview(codec.encode_request(message, correlation_id=1, client_id=None))[4:]
    context = RequestContext(listener_name=through, client_host="127.0.0.1")
    return Request(codec.decode_header(frame), frame, context)
