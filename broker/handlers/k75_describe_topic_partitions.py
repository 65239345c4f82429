"""DescribeTopicPartitions, version 0.

Behaviour: topics in alphabetical order (no topics asked means all), partitions in order, at most
response_partition_limit of them and never more than PARTITIONS_MAX; what is left starts at
next_cursor, which the client sends back.
Notes: eligible leader replicas (KIP-966) are not kept, so those lists are empty (Kafka's Java
clients before 4.0 fail on null).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.handlers.topic_view import view_partition, view_topic_head
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import Resource
from broker.metadata.image import MetadataImage, TopicImage
from broker.metadata.topic_names import problem_of_topic_name
from broker.protocol.request_context import RequestContext

API_KEY = 75
PARTITIONS_MAX = 2000
"""Kafka's max.request.partition.size.limit."""
_NO_ELIGIBLE: dict[str, tuple[int, ...]] = {"eligible_leader_replicas": (), "last_known_elr": ()}

View = Callable[[TopicImage, list[int]], dict[str, Any]]
"""A topic with these of its partitions."""


@handles(api_key=API_KEY, versions=(0, 0))
async def handle_describe_topic_partitions(request: Request, node: NodeServices) -> LargeAnswer:
    """One page of topics and partitions."""
    message = request.message
    image = node.metadata.image
    asked = {topic.name for topic in message.topics}
    hidden = await node.authorization.refused(
        *(request.context, Operation.DESCRIBE, ResourceKind.TOPIC, asked or image.topics),
        is_told=bool(asked),
    )
    names = sorted((asked or image.topics.keys()) - hidden)
    first_partition = 0
    if message.cursor is not None:
        names = [name for name in names if name >= message.cursor.topic_name]
        if names and names[0] == message.cursor.topic_name:
            first_partition = message.cursor.partition_index
    limit = min(max(message.response_partition_limit, 1), PARTITIONS_MAX)
    view = partial(_describe, node, request.context)
    topics, cursor = _page(image, view, names, first_partition, limit)
    denied = ErrorCode.topic_authorization_failed
    topics += [_refusal(name, denied) for name in sorted(hidden) if asked]
    entries = sum(len(topic["partitions"]) for topic in topics)
    return LargeAnswer(entries, topics=topics, next_cursor=cursor)


def _page(
    image: MetadataImage, view: View, names: list[str], first_partition: int, limit: int
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Topics up to `limit` partitions in all, and where the next page starts (None: nowhere)."""
    topics: list[dict[str, Any]] = []
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            topics.append(_refusal(name))
            continue
        if limit == 0:
            return topics, {"topic_name": name, "partition_index": 0}
        shown = [number for number in sorted(topic.partitions) if number >= first_partition]
        first_partition = 0
        topics.append(view(topic, shown[:limit]))
        if len(shown) > limit:
            return topics, {"topic_name": name, "partition_index": shown[limit]}
        limit -= len(shown)
    return topics, None


def _describe(
    node: NodeServices, context: RequestContext, topic: TopicImage, shown: list[int]
) -> dict[str, Any]:
    image, listener_name = node.metadata.image, context.listener_name
    resource = Resource(kind=ResourceKind.TOPIC, name=topic.name)
    return {
        **view_topic_head(topic, node.authorization.operations(context, resource)),
        "partitions": [
            {**view_partition(image, topic.partitions[number], listener_name), **_NO_ELIGIBLE}
            for number in shown
        ],
    }


def _refusal(name: str, error: ErrorCode = ErrorCode.unknown_topic_or_partition) -> dict[str, Any]:
    if error is ErrorCode.unknown_topic_or_partition and problem_of_topic_name(name):
        error = ErrorCode.invalid_topic_exception
    return {"error_code": error, "name": name, "partitions": ()}
