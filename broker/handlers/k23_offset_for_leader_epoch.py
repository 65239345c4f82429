"""OffsetForLeaderEpoch, versions 2-4 (KIP-101, KIP-279, KIP-320).

Behaviour: the end of the asked leader epoch, or of the largest one below it, in the leader's log;
-1 and -1 when the log knows none.
Notes: our followers find divergence in Fetch; this is for consumers, who validate their positions.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.partition_errors import located_error, partition_error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec
from broker.replication.errors import UnknownPartitionError
from broker.replication.leader.fetch_reader import check_leader

API_KEY = 23


@handles(api_key=API_KEY, versions=(2, 4), listener=Listener.CLIENT)
def handle_offset_for_leader_epoch(request: Request, node: NodeServices) -> Any:
    """Where epochs ended, for every partition named."""
    return codec.build_response(
        API_KEY,
        request.api_version,
        topics=[
            {
                "topic": topic.topic,
                "partitions": [_answer(node, topic.topic, asked) for asked in topic.partitions],
            }
            for topic in request.message.topics
        ],
    )


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
