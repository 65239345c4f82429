"""DescribeProducers, version 0 (KIP-664).

Behaviour: the leader tells the producers that a partition knows, and where their open transactions
begin. A partition that is led elsewhere is NOT_LEADER_OR_FOLLOWER.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.partition_errors import located_error, partition_error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.log.errors import StorageError
from broker.log.producer.producer_state import ProducerEntry
from broker.metadata.acls import Operation, ResourceKind
from broker.replication.errors import UnknownPartitionError
from broker.replication.leader.fetch_reader import check_leader

API_KEY = 61


@handles(api_key=API_KEY, versions=(0, 0), listener=Listener.CLIENT)
async def handle_describe_producers(request: Request, node: NodeServices) -> LargeAnswer:
    """Producers of each partition named."""
    slices, topics, entries = Slices(), list[dict[str, Any]](), 0
    names = [str(topic.name) for topic in request.message.topics]
    refused = await node.authorization.refused(
        request.context, Operation.READ, ResourceKind.TOPIC, names
    )
    for topic in request.message.topics:
        rows = list[dict[str, Any]]()
        for index in topic.partition_indexes:
            if topic.name in refused:
                error = ErrorCode.topic_authorization_failed
                rows.append(
                    {"partition_index": int(index), "error_code": error, "active_producers": []}
                )
            else:
                rows.append(await _partition(node, str(topic.name), int(index), slices))
            entries += 1 + len(rows[-1]["active_producers"])
        topics.append({"name": topic.name, "partitions": rows})
    return LargeAnswer(entries, topics=topics)


async def _partition(node: NodeServices, topic: str, index: int, slices: Slices) -> dict[str, Any]:
    found = node.replicas.partition(topic, index)
    error: Exception | None = UnknownPartitionError()
    producers: list[ProducerEntry] = []
    if found is not None:
        error = check_leader(found, -1)
        try:
            producers = [] if error else list(found.log.producers.state.entries.values())
        except StorageError as storage:
            error = storage
    located = located_error(node.metadata.image, topic, index, error)
    return {
        "partition_index": index,
        "error_code": partition_error_code(located),
        "error_message": None,
        "active_producers": await slices.all(_producer(entry) for entry in producers),
    }


def _producer(entry: ProducerEntry) -> dict[str, Any]:
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp": entry.last_timestamp,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_start_offset": entry.current_txn_first_offset,
    }
