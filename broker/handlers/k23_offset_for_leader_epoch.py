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
from broker.replication.errors import UnknownPartitionError
from broker.replication.leader.fetch_reader import check_leader

API_KEY = 23


@handles(api_key=API_KEY, versions=(2, 4), listener=Listener.CLIENT)
async def handle_offset_for_leader_epoch(request: Request, node: NodeServices) -> LargeAnswer:
    """Where epochs ended, for every partition named; others go on in between."""
    slices, topics = Slices(), list[dict[str, Any]]()
    for topic in request.message.topics:
        rows = list[dict[str, Any]]()
        for asked in topic.partitions:
            rows.append(_answer(node, topic.topic, asked))
            await slices.pause()
        topics.append({"topic": topic.topic, "partitions": rows})
    return LargeAnswer(sum(len(topic["partitions"]) for topic in topics), topics=topics)


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
