"""OffsetForLeaderEpoch, versions 2-4 (KIP-101, KIP-279, KIP-320).

Behaviour: the end of the asked leader epoch, or of the largest one below it, in the leader's log;
-1 and -1 when the log knows none.
Notes: our followers find divergence in Fetch; this is for consumers, who validate their positions.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.partition_errors import located_error, partition_error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER
from broker.replication.errors import UnknownPartitionError
from broker.replication.leader.fetch_reader import check_leader

API_KEY = 23


@handles(api_key=API_KEY, versions=(2, 4), listener=Listener.CLIENT)
async def handle_offset_for_leader_epoch(request: Request, node: NodeServices) -> LargeAnswer:
    """Where epochs ended, for every partition named; others go on in between."""
    refused = await _refused(request, node)
    slices, topics = Slices(), list[dict[str, Any]]()
    for topic in request.message.topics:
        rows = list[dict[str, Any]]()
        for asked in topic.partitions:
            if topic.topic in refused:
                error = ErrorCode.topic_authorization_failed
                rows.append({"error_code": error, "partition": asked.partition})
            else:
                rows.append(_answer(node, topic.topic, asked))
            await slices.pause()
        topics.append({"topic": topic.topic, "partitions": rows})
    return LargeAnswer(sum(len(topic["partitions"]) for topic in topics), topics=topics)


async def _refused(request: Request, node: NodeServices) -> frozenset[str]:
    """Topics that the principal may not see; brokers may see all."""
    authorization, context = node.authorization, request.context
    if authorization.is_allowed(context, Operation.CLUSTER_ACTION, CLUSTER, is_told=False):
        return frozenset()
    names = [topic.topic for topic in request.message.topics]
    return await authorization.refused(context, Operation.DESCRIBE, ResourceKind.TOPIC, names)


def _answer(node: NodeServices, topic: str, asked: Any) -> dict[str, Any]:
    partition = node.replicas.partition(topic, asked.partition)
    error: Exception | None = UnknownPartitionError()
    if partition is not None:
        error = check_leader(partition, asked.current_leader_epoch)
    if partition is None or error is not None:
        error = located_error(node.metadata.image, topic, asked.partition, error)
        return {"error_code": partition_error_code(error), "partition": asked.partition}
    end = partition.log.end_offset_for_epoch(asked.leader_epoch)
    return {
        "error_code": ErrorCode.none,
        "partition": asked.partition,
        "leader_epoch": end.epoch,
        "end_offset": end.end_offset,
    }
