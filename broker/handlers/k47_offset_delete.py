"""OffsetDelete, version 0.

Behaviour: forgets committed offsets of topics to which no member of the group subscribes; other
partitions get GROUP_SUBSCRIBED_TO_TOPIC (KIP-496). A running group whose subscription cannot be
read is NON_EMPTY_GROUP as a whole.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.coordinator.errors import CoordinatorError
from broker.handlers.registry import Right, handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 47


@handles(
    api_key=API_KEY,
    versions=(0, 0),
    rights=(Right(Operation.DELETE, ResourceKind.GROUP, "group_id"),),
)
async def handle_offset_delete(request: Request, node: NodeServices) -> Any:
    """Forget offsets, one verdict per partition."""
    message, image = request.message, node.metadata.image
    keys = [
        (topic.name, partition.partition_index)
        for topic in message.topics
        for partition in topic.partitions
    ]
    names = [topic.name for topic in message.topics]
    refused = await node.authorization.refused(
        request.context, Operation.READ, ResourceKind.TOPIC, names
    )
    known = [key for key in keys if key[0] not in refused and image.partition(*key) is not None]
    deleted = await node.groups.offsets.delete_offsets(message.group_id, known)
    if deleted.error is not CoordinatorError.NONE:
        error_code = deleted.error.code
        return codec.build_response(API_KEY, request.api_version, error_code=error_code)
    verdicts = {key: error.code for key, error in deleted.partitions.items()}
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {
                    "partition_index": partition.partition_index,
                    "error_code": verdicts.get(
                        (topic.name, partition.partition_index),
                        ErrorCode.topic_authorization_failed
                        if topic.name in refused
                        else ErrorCode.unknown_topic_or_partition,
                    ),
                }
                for partition in topic.partitions
            ],
        }
        for topic in message.topics
    ]
    return codec.build_response(API_KEY, request.api_version, topics=topics)
