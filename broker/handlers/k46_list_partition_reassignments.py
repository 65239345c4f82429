"""ListPartitionReassignments, version 0 (KIP-455).

Behaviour: answered from this broker's image; without topics all moves in flight.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.reassignment import list_reassignments
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.protocol import codec

API_KEY: Final = 46


@handles(api_key=API_KEY, versions=(0, 0))
def handle_list_reassignments(request: Request, node: NodeServices) -> Any:
    """List moves in flight."""
    wanted = None
    if request.message.topics is not None:
        wanted = [
            (topic.name, int(partition))
            for topic in request.message.topics
            for partition in topic.partition_indexes
        ]
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for partition in list_reassignments(node.metadata.image, wanted):
        by_topic.setdefault(partition.topic, []).append(
            {
                "partition_index": partition.partition,
                "replicas": partition.replicas,
                "adding_replicas": partition.adding_replicas,
                "removing_replicas": partition.removing_replicas,
            }
        )
    topics = [{"name": topic, "partitions": items} for topic, items in by_topic.items()]
    return codec.build_response(
        API_KEY,
        request.api_version,
        error_code=ErrorCode.none,
        error_message=None,
        topics=topics,
    )
