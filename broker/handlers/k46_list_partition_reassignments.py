"""ListPartitionReassignments, version 0 (KIP-455).

Behaviour: answered from this broker's image; without topics all moves in flight.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.controller.reassignment import list_reassignments
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation

API_KEY: Final = 46


@handles(api_key=API_KEY, versions=(0, 0), cluster_operation=Operation.DESCRIBE)
async def handle_list_reassignments(request: Request, node: NodeServices) -> LargeAnswer:
    """List moves in flight; others go on in between."""
    wanted = None
    if request.message.topics is not None:
        wanted = [
            (topic.name, int(partition))
            for topic in request.message.topics
            for partition in topic.partition_indexes
        ]
    by_topic: dict[str, list[dict[str, Any]]] = {}
    slices = Slices()
    for partition in list_reassignments(node.metadata.image, wanted):
        await slices.pause()
        by_topic.setdefault(partition.topic, []).append(
            {
                "partition_index": partition.partition,
                "replicas": partition.replicas,
                "adding_replicas": partition.adding_replicas,
                "removing_replicas": partition.removing_replicas,
            }
        )
    topics = [{"name": topic, "partitions": items} for topic, items in by_topic.items()]
    entries = sum(map(len, by_topic.values()))
    return LargeAnswer(entries, error_code=ErrorCode.none, error_message=None, topics=topics)
