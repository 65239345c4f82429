"""TxnOffsetCommit, versions 0-5.

Behaviour: stores offsets of one group as part of the producer's transaction: they count once it is
committed. Before, AddOffsetsToTxn has told the transaction's coordinator, which is asked.
Notes: from v3 a member names itself and its generation, and is refused when that has passed
(KIP-447). A partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION. From v4 on clients know
TRANSACTION_ABORTABLE. v5 belongs to transactions of version 2: no AddOffsetsToTxn came before, the
group's coordinator adds its partition.
"""

from collections.abc import Iterator
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.coordinator.offsets.committed_offsets import TopicPartition
from broker.coordinator.offsets.offset_manager import CommitRequested, OpenTransaction
from broker.coordinator.records import CommittedOffset
from broker.coordinator.transactions.transaction_metadata import Producer
from broker.handlers.k24_add_partitions_to_txn import supported_operation
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import NOT_AUTHORIZED, handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind

API_KEY = 28
ABORTABLE_SINCE = 4
ADDING_SINCE = 5


@handles(api_key=API_KEY, versions=(0, 5), listener=Listener.CLIENT)
async def handle_txn_offset_commit(request: Request, node: NodeServices) -> LargeAnswer:
    """Commit what exists within the transaction, one verdict per partition."""
    message, slices = request.message, Slices()
    refused = await _refused(request, node)
    known = {
        key: offset
        for key, offset in await slices.all(_known_offsets(message, node))
        if key[0] not in refused
    }
    verdicts = {}
    if known:
        producer = Producer(message.producer_id, message.producer_epoch)
        verdicts = dict(
            await node.groups.offsets.commit(
                CommitRequested(
                    group_id=message.group_id,
                    member_id=getattr(message, "member_id", ""),
                    group_instance_id=getattr(message, "group_instance_id", None),
                    generation_id=getattr(message, "generation_id", -1),
                    offsets=known,
                    transaction=OpenTransaction(
                        str(message.transactional_id),
                        producer,
                        supported_operation(
                            request.api_version, abortable=ABORTABLE_SINCE, adding=ADDING_SINCE
                        ),
                    ),
                )
            )
        )
    topics: list[dict[str, Any]] = []
    for topic in message.topics:
        rows = []
        for partition in topic.partitions:
            verdict = verdicts.get((str(topic.name), partition.partition_index))
            missing = refused.get(str(topic.name), ErrorCode.unknown_topic_or_partition)
            code = missing if verdict is None else verdict.code
            rows.append({"partition_index": partition.partition_index, "error_code": code})
            await slices.pause()
        topics.append({"name": topic.name, "partitions": rows})
    return LargeAnswer(sum(len(topic["partitions"]) for topic in topics), topics=topics)


async def _refused(request: Request, node: NodeServices) -> dict[str, ErrorCode]:
    """Topics whose offsets the principal may not commit, and how that is told."""
    authorization, message, context = node.authorization, request.message, request.context
    names = [str(topic.name) for topic in message.topics]
    whole = (
        (Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, str(message.transactional_id)),
        (Operation.READ, ResourceKind.GROUP, str(message.group_id)),
    )
    for right, kind, name in whole:
        if authorization.is_refused(context, right, kind, name):
            return dict.fromkeys(names, NOT_AUTHORIZED[kind])
    refused = await authorization.refused(context, Operation.READ, ResourceKind.TOPIC, names)
    return dict.fromkeys(refused, NOT_AUTHORIZED[ResourceKind.TOPIC])


def _known_offsets(
    message: Any, node: NodeServices
) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
    now_ms, image = node.clock.wall_ms(), node.metadata.image
    for topic in message.topics:
        for partition in topic.partitions:
            key = (str(topic.name), int(partition.partition_index))
            if image.partition(*key) is not None:
                yield (
                    key,
                    CommittedOffset(
                        offset=partition.committed_offset,
                        leader_epoch=getattr(partition, "committed_leader_epoch", -1),
                        metadata=partition.committed_metadata or "",
                        commit_ms=now_ms,
                    ),
                )
