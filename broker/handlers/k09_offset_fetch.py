"""OffsetFetch, versions 1-10.

Behaviour: committed offsets of one group, from v8 of several; null topics mean all that the group
has. A partition without a commit, and a group that nobody knows, read as offset -1 without error.
Notes: v5 adds the leader epoch, v7 require_stable (where an open transaction commits an offset, the
answer is UNSTABLE_OFFSET_COMMIT, which clients retry), v9 member id and epoch, v10 topic ids
(KIP-848). Before v2 a group's error is repeated for each partition.
"""

from collections.abc import Container, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.offsets.committed_offsets import TopicPartition
from broker.coordinator.offsets.offset_manager import FetchedOffsets
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.handlers.topic_view import asked_topic_name
from broker.metadata.acls import Operation, ResourceKind

API_KEY = 9
TOPIC_IDS_VERSION = 10


@handles(api_key=API_KEY, versions=(1, 10))
async def handle_offset_fetch(request: Request, node: NodeServices) -> LargeAnswer:
    """Answer from memory: what is committed here is durable already. Others go on in between."""
    message, version = request.message, request.api_version
    slices = Slices()
    if version >= 8:
        groups = list[dict[str, Any]]()
        for group in message.groups:
            groups.append(await _group_answer(group, request, node, slices))
        return LargeAnswer(sum(map(_entries, groups)), groups=groups)
    answer = await _group_answer(message, request, node, slices)
    # The single group's topics are another entity of the schema, which never knew topic ids.
    topics = [{"name": t["name"], "partitions": t["partitions"]} for t in answer["topics"]]
    error_code = answer["error_code"]
    return LargeAnswer(_entries(answer), topics=topics, error_code=error_code)


def _entries(group: dict[str, Any]) -> int:
    return 1 + sum(len(topic["partitions"]) for topic in group["topics"])


async def _group_answer(
    group: Any, request: Request, node: NodeServices, slices: Slices
) -> dict[str, Any]:
    message, version, context = request.message, request.api_version, request.context
    answer: dict[str, Any] = {"group_id": group.group_id, "topics": []}
    authorization, kind = node.authorization, ResourceKind.GROUP
    if authorization.is_refused(context, Operation.DESCRIBE, kind, group.group_id):
        return _refuse(group, answer, version)
    names: list[str | None] | None = None
    wanted = None
    if group.topics is not None:
        names = [asked_topic_name(node.metadata.image, topic) for topic in group.topics]
        wanted = [
            (name, index)
            for name, topic in zip(names, group.topics, strict=True)
            for index in topic.partition_indexes
            if name is not None
        ]
    fetched: FetchedOffsets = node.groups.offsets.fetch(
        group.group_id,
        wanted,
        is_stable_required=getattr(message, "require_stable", False),
        member=_asking_member(group),
    )
    await slices.pause()
    answer["error_code"] = fetched.error.code
    if fetched.error is not CoordinatorError.NONE and version >= 2:
        return answer
    if names is None:
        found = [topic for topic, _ in fetched.offsets]
        hidden = await authorization.refused(
            context, Operation.DESCRIBE, ResourceKind.TOPIC, found, is_told=False
        )
        topics = _all_topics(fetched, node, version)
        answer["topics"] = [topic for topic in topics if topic["name"] not in hidden]
    else:
        known = [name for name in names if name is not None]
        refused = await authorization.refused(
            context, Operation.DESCRIBE, ResourceKind.TOPIC, known
        )
        for topic, name in zip(group.topics, names, strict=True):
            answer["topics"].append(_topic_answer(topic, name, fetched, refused))
            await slices.pause()
    return answer


def _asking_member(group: Any) -> tuple[str, int] | None:
    """From version 9 a member tells who it is and its epoch; tools do not."""
    member_id, epoch = getattr(group, "member_id", None), getattr(group, "member_epoch", -1)
    return None if member_id is None and epoch < 0 else (member_id or "", epoch)


def _refuse(group: Any, answer: dict[str, Any], version: int) -> dict[str, Any]:
    """Before version 2 only partitions can tell an error."""
    error = ErrorCode.group_authorization_failed
    nothing = FetchedOffsets()
    if version < 2:
        answer["topics"] = [
            {
                "name": topic.name,
                "partitions": [
                    _partition_answer((topic.name, it), nothing, error)
                    for it in topic.partition_indexes
                ],
            }
            for topic in group.topics or ()
        ]
    return {**answer, "error_code": error}


def _topic_answer(
    topic: Any, name: str | None, fetched: FetchedOffsets, refused: Container[str]
) -> dict[str, Any]:
    error = fetched.error.code if name is not None else ErrorCode.unknown_topic_id
    if name in refused:
        fetched, error = FetchedOffsets(), ErrorCode.topic_authorization_failed
    partitions = [
        _partition_answer((name or "", index), fetched, error) for index in topic.partition_indexes
    ]
    topic_id = getattr(topic, "topic_id", None)
    return {"name": name or "", "topic_id": topic_id, "partitions": partitions}


def _all_topics(
    fetched: FetchedOffsets, node: NodeServices, version: int
) -> Sequence[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for key in fetched.offsets:
        partition = _partition_answer(key, fetched, ErrorCode.none)
        topics.setdefault(key[0], []).append(partition)
    images = node.metadata.image.topics
    return [
        {
            "name": name,
            "topic_id": images[name].topic_id if name in images else None,
            "partitions": partitions,
        }
        for name, partitions in topics.items()
        # A topic that is gone has no id to be named by.
        if version < TOPIC_IDS_VERSION or name in images
    ]


def _partition_answer(
    key: TopicPartition, fetched: FetchedOffsets, error: ErrorCode
) -> dict[str, Any]:
    committed = fetched.offsets.get(key)
    if key in fetched.unstable:
        committed, error = None, ErrorCode.unstable_offset_commit
    return {
        "partition_index": key[1],
        "committed_offset": -1 if committed is None else committed.offset,
        "committed_leader_epoch": -1 if committed is None else committed.leader_epoch,
        "metadata": "" if committed is None else committed.metadata,
        "error_code": error,
    }
