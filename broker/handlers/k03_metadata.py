"""Metadata, versions 0-13.

Behaviour: brokers that are alive, the active controller, and the topics asked for by name or
(v10+) by id, each once; null topics (v0: an empty list) mean all. An unknown name is created with
num.partitions and default.replication.factor when both the request (v4+) and
auto.create.topics.enable allow it; the answer then waits up to a second for the new topic.
Notes: Kafka answers at once and lets the client come back; waiting saves that round trip. Names
are checked by Topic.validate's rules before anything is created.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.handlers.topic_view import (
    view_brokers,
    view_controller,
)
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER, OPERATIONS_OMITTED, Resource
from broker.metadata.image import MetadataImage, TopicImage
from broker.metadata.topic_names import (
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    problem_of_topic_name,
)
from broker.protocol import codec
from broker.protocol.hot.metadata import encode_metadata, encode_topic
from broker.protocol.request_context import RequestContext

API_KEY = 3
CREATE_TOPICS = 19
CREATE_TOPICS_VERSION = 7
CREATE_WAIT_S = 1.0
CREATE_WAIT_STEPS = 200


@handles(api_key=API_KEY, versions=(0, 13))
async def handle_metadata(request: Request, node: NodeServices) -> bytes:
    """Brokers, controller and topics as this node's image has them."""
    message, version = request.message, request.api_version
    created = dict.fromkeys(await _hidden(request, node), ErrorCode.topic_authorization_failed)
    missing = [name for name in _missing_names(message, node) if name not in created]
    if missing and _may_create(message, node):
        created |= await _create(missing, node, request.context)
    image = node.metadata.image
    listener_name = request.context.listener_name
    with_cluster = getattr(message, "include_cluster_authorized_operations", False)
    return encode_metadata(
        version,
        request.correlation_id,
        await _encode_topics(request, node, image, created),
        brokers=[
            {"node_id": it.id, "host": endpoint.host, "port": endpoint.port, "rack": it.rack}
            for it, endpoint in view_brokers(image, listener_name)
        ],
        cluster_id=image.cluster_id,
        controller_id=view_controller(image, listener_name),
        cluster_authorized_operations=(
            node.authorization.cluster_operations(request.context)
            if with_cluster
            else OPERATIONS_OMITTED
        ),
    )


async def _encode_topics(
    request: Request, node: NodeServices, image: MetadataImage, created: dict[str, ErrorCode]
) -> list[bytes]:
    message, version = request.message, request.api_version
    listener_name = request.context.listener_name
    with_operations = getattr(message, "include_topic_authorized_operations", False)
    found: Iterable[TopicImage | dict[str, Any]]
    if _wants_all(message, version):
        hidden = await node.authorization.refused(
            request.context, Operation.DESCRIBE, ResourceKind.TOPIC, image.topics, is_told=False
        )
        found = [topic for name, topic in sorted(image.topics.items()) if name not in hidden]
    else:
        asked_once = {(it.name, getattr(it, "topic_id", None)): it for it in message.topics}
        found = [_find(asked, node, created) for asked in asked_once.values()]
    encoded: list[bytes] = []
    slices = Slices()
    for topic in found:
        if isinstance(topic, dict):
            encoded.append(encode_topic(version, topic))
        else:
            operations = OPERATIONS_OMITTED
            if with_operations:
                operations = _operations(request, node, topic)
            encoded.append(
                await node.metadata_blobs.encode(image, topic, version, listener_name, operations)
            )
        await slices.pause()
    return encoded


def _operations(request: Request, node: NodeServices, topic: TopicImage) -> int:
    resource = Resource(kind=ResourceKind.TOPIC, name=topic.name)
    return node.authorization.operations(request.context, resource)


def _wants_all(message: Any, version: int) -> bool:
    return message.topics is None or (version == 0 and not message.topics)


def _find(
    asked: Any, node: NodeServices, created: dict[str, ErrorCode]
) -> TopicImage | dict[str, Any]:
    """The topic asked for, or the fields that say why there is none."""
    image = node.metadata.image
    if asked.name is None:
        topic_id = getattr(asked, "topic_id", None)
        by_id = None if topic_id is None else image.topics_by_id.get(topic_id)
        if by_id is not None and by_id.name in created:
            return _refusal(None, topic_id, created[by_id.name])
        return by_id or _refusal(None, topic_id, ErrorCode.unknown_topic_id)
    topic = image.topics.get(asked.name)
    if created.get(asked.name) is ErrorCode.topic_authorization_failed:
        topic = None
    error = created.get(asked.name, ErrorCode.unknown_topic_or_partition)
    if asked.name not in created and problem_of_topic_name(asked.name):
        error = ErrorCode.invalid_topic_exception
    return topic or _refusal(asked.name, None, error)


def _refusal(name: str | None, topic_id: Any, error: ErrorCode) -> dict[str, Any]:
    return {
        "error_code": error,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS
        and error is not ErrorCode.topic_authorization_failed,
        "partitions": (),
    }


async def _hidden(request: Request, node: NodeServices) -> frozenset[str]:
    """Topics asked for that the principal may not see, whether they exist or not."""
    image, asked = node.metadata.image, request.message.topics or ()
    if not node.authorization.is_enabled:
        return frozenset()
    names = [it.name for it in asked if it.name is not None]
    ids = [it.topic_id for it in asked if it.name is None and getattr(it, "topic_id", None)]
    by_id = [image.topics_by_id[it].name for it in ids if it in image.topics_by_id]
    kind, known = ResourceKind.TOPIC, [*names, *by_id]
    return await node.authorization.refused(request.context, Operation.DESCRIBE, kind, known)


def _missing_names(message: Any, node: NodeServices) -> list[str]:
    topics = node.metadata.image.topics
    names = (asked.name for asked in message.topics or () if asked.name is not None)
    return [name for name in dict.fromkeys(names) if name not in topics]


def _may_create(message: Any, node: NodeServices) -> bool:
    # Before v4 a request could not say no.
    return node.config.auto_create_topics_enable and getattr(
        message, "allow_auto_topic_creation", True
    )


async def _create(
    names: Iterable[str], node: NodeServices, context: RequestContext
) -> dict[str, ErrorCode]:
    """Create what can be; the error of each name that was refused for good."""
    names = [name for name in names if not problem_of_topic_name(name)]
    own = [name for name in names if name not in (*INTERNAL_TOPICS, METADATA_TOPIC)]
    request = codec.build_request(
        CREATE_TOPICS,
        CREATE_TOPICS_VERSION,
        topics=[{"name": name, "num_partitions": -1, "replication_factor": -1} for name in own],
        timeout=int(CREATE_WAIT_S * 1000),
    )
    refused: dict[str, ErrorCode] = {}
    try:
        async with asyncio.timeout(CREATE_WAIT_S):
            if OFFSETS_TOPIC in names and _may_create_internal(node, context):
                await node.controller.ensure_internal_topic(OFFSETS_TOPIC)
            if own:
                answer = await node.controller.submit(
                    CREATE_TOPICS, CREATE_TOPICS_VERSION, request, context=context
                )
                refused = _refused(answer)
            await _wait_for(own, refused, node)
    except OSError:
        # No time or no controller (it may be electing): the client asks again.
        pass
    return refused


def _may_create_internal(node: NodeServices, context: RequestContext) -> bool:
    rights = ((CLUSTER.kind, CLUSTER.name), (ResourceKind.TOPIC, OFFSETS_TOPIC))
    return any(
        node.authorization.is_allowed(context, Operation.CREATE, Resource(kind=kind, name=name))
        for kind, name in rights
    )


def _refused(answer: Any) -> dict[str, ErrorCode]:
    harmless = (ErrorCode.none, ErrorCode.topic_already_exists)
    return {t.name: t.error_code for t in answer.topics if t.error_code not in harmless}


async def _wait_for(names: list[str], refused: dict[str, ErrorCode], node: NodeServices) -> None:
    """Until this node's image has caught up with what the controller committed."""
    expected = [name for name in names if name not in refused]
    for _ in range(CREATE_WAIT_STEPS):
        if all(name in node.metadata.image.topics for name in expected):
            return
        await asyncio.sleep(CREATE_WAIT_S / CREATE_WAIT_STEPS)
