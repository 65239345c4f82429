"""OffsetCommit, versions 2-10.

Behaviour: stores the offsets of one group durably (acks=all) before it answers; a commit renews
the member's session. Generation -1 is a simple consumer or a tool, allowed while the group has no
members. A partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION
(an unknown topic id, from v10, UNKNOWN_TOPIC_ID) and the others are committed.
Notes: v2-4 carry a retention time, which becomes an explicit expiry; v6 a leader epoch; v7 the
group instance id; v10 names topics by id (KIP-848).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.offsets.committed_offsets import TopicPartition
from broker.coordinator.offsets.offset_manager import CommitRequested
from broker.coordinator.records import NO_EXPIRY_MS, CommittedOffset
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.handlers.topic_view import asked_topic_name
from broker.metadata.acls import Operation, ResourceKind

API_KEY = 8


@handles(api_key=API_KEY, versions=(2, 10))
async def handle_offset_commit(request: Request, node: NodeServices) -> LargeAnswer:
    """Commit what exists, refuse the rest, one verdict per partition."""
    message = request.message
    image = node.metadata.image
    names = [asked_topic_name(image, topic) for topic in message.topics]
    refused = await _refused(request, names, node)
    slices = Slices()
    allowed = [None if name in refused else name for name in names]
    known = dict(await slices.all(_known_offsets(message, allowed, node)))
    verdicts: Mapping[TopicPartition, CoordinatorError] = {}
    if known:
        verdicts = await node.groups.offsets.commit(
            CommitRequested(
                group_id=message.group_id,
                member_id=message.member_id,
                group_instance_id=getattr(message, "group_instance_id", None),
                generation_id=message.generation_id_or_member_epoch,
                offsets=known,
            )
        )
    topics: list[dict[str, Any]] = [
        {
            "name": name or "",
            "topic_id": getattr(topic, "topic_id", None),
            "partitions": await slices.all(
                _partition_answers(topic, name, refused.get(name or "") or verdicts)
            ),
        }
        for topic, name in zip(message.topics, names, strict=True)
    ]
    return LargeAnswer(sum(len(topic["partitions"]) for topic in topics), topics=topics)


async def _refused(
    request: Request, names: list[str | None], node: NodeServices
) -> dict[str, ErrorCode]:
    """Topics whose offsets the principal may not commit, and how that is told."""
    authorization, context = node.authorization, request.context
    known, group = [name for name in names if name is not None], request.message.group_id
    if authorization.is_refused(context, Operation.READ, ResourceKind.GROUP, group):
        return dict.fromkeys(["", *known], ErrorCode.group_authorization_failed)
    refused = await authorization.refused(context, Operation.READ, ResourceKind.TOPIC, known)
    return dict.fromkeys(refused, ErrorCode.topic_authorization_failed)


def _known_offsets(
    message: Any, names: list[str | None], node: NodeServices
) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
    now_ms, image = node.clock.wall_ms(), node.metadata.image
    expire_ms = _expire_ms(message, now_ms)
    for topic, name in zip(message.topics, names, strict=True):
        for partition in topic.partitions:
            index = partition.partition_index
            if name is not None and image.partition(name, index) is not None:
                yield (
                    (name, index),
                    CommittedOffset(
                        offset=partition.committed_offset,
                        leader_epoch=getattr(partition, "committed_leader_epoch", -1),
                        metadata=partition.committed_metadata or "",
                        commit_ms=now_ms,
                        expire_ms=expire_ms,
                    ),
                )


def _expire_ms(message: Any, now_ms: int) -> int:
    retention = getattr(message, "retention_time", None)
    if retention is None or retention.total_seconds() < 0:
        return NO_EXPIRY_MS
    return now_ms + int(retention.total_seconds() * 1000)


def _partition_answers(
    topic: Any, name: str | None, verdicts: Mapping[TopicPartition, CoordinatorError] | ErrorCode
) -> Iterator[dict[str, Any]]:
    if isinstance(verdicts, ErrorCode):
        for partition in topic.partitions:
            yield {"partition_index": partition.partition_index, "error_code": verdicts}
        return
    missing = ErrorCode.unknown_topic_or_partition if name else ErrorCode.unknown_topic_id
    for partition in topic.partitions:
        verdict = verdicts.get((name or "", partition.partition_index))
        yield {
            "partition_index": partition.partition_index,
            "error_code": missing if verdict is None else verdict.code,
        }
