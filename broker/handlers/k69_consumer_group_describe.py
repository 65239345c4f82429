"""ConsumerGroupDescribe, versions 0-1 (KIP-848).

Behaviour: state, epochs and members of groups of the consumer protocol, with what each member has
and shall have. Unknown and classic groups are GROUP_ID_NOT_FOUND.
Notes: a group with a topic that the principal may not describe is refused whole; version 1 tells
the type of a member.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.consumer.consumer_member import NOTHING, Assigned, ConsumerMember
from broker.coordinator.errors import CoordinatorError
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import OPERATIONS_OMITTED, Resource

API_KEY = 69
CONSUMER_MEMBER = 1


@handles(api_key=API_KEY, versions=(0, 1))
async def handle_consumer_group_describe(request: Request, node: NodeServices) -> LargeAnswer:
    """One description per group asked for; others go on in between."""
    message, groups, slices = request.message, list[dict[str, Any]](), Slices()
    refused = await node.authorization.refused(
        request.context, Operation.DESCRIBE, ResourceKind.GROUP, message.group_ids
    )
    names = {it.topic_id: it.name for it in node.metadata.image.topics.values()}
    for group_id in message.group_ids:
        await slices.pause()
        if group_id in refused:
            groups.append(_refuse(group_id, ErrorCode.group_authorization_failed))
        else:
            groups.append(await _described(group_id, names, request, node))
    entries = len(groups) + sum(len(group["members"]) for group in groups)
    return LargeAnswer(entries, groups=groups)


async def _described(
    group_id: str, names: Mapping[UUID, str], request: Request, node: NodeServices
) -> dict[str, Any]:
    group = node.groups.views.consumer_group(group_id)
    if group is None:
        words = f"Group {group_id} is not a consumer group."
        return _refuse(group_id, ErrorCode.group_id_not_found, words)
    if isinstance(group, CoordinatorError):
        is_missing = group is CoordinatorError.GROUP_ID_NOT_FOUND
        return _refuse(group_id, group.code, f"Group {group_id} not found." if is_missing else None)
    authorization, context = node.authorization, request.context
    topics = {names[topic] for topic in group.holders if topic in names}
    if await authorization.refused(context, Operation.DESCRIBE, ResourceKind.TOPIC, topics):
        words = "The described group uses topics that the client is not authorized to describe."
        return _refuse(group_id, ErrorCode.topic_authorization_failed, words)
    operations = OPERATIONS_OMITTED
    if request.message.include_authorized_operations:
        resource = Resource(kind=ResourceKind.GROUP, name=group_id)
        operations = authorization.operations(context, resource)
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "group_id": group_id,
        "group_state": str(group.state),
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
        "assignor_name": group.assignor,
        "members": [_member(group, it, names) for it in group.members.values()],
        "authorized_operations": operations,
    }


def _refuse(group_id: str, error: ErrorCode, reason: str | None = None) -> dict[str, Any]:
    return {
        "error_code": error, "error_message": reason, "group_id": group_id, "group_state": "",
        "group_epoch": 0, "assignment_epoch": 0, "assignor_name": "", "members": [],
        "authorized_operations": OPERATIONS_OMITTED,
    }  # fmt: skip


def _member(
    group: ConsumerGroup, member: ConsumerMember, names: Mapping[UUID, str]
) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": sorted(member.topics),
        "subscribed_topic_regex": member.regex or None,
        "assignment": _assignment(member.assigned, names),
        "target_assignment": _assignment(group.target.get(member.member_id, NOTHING), names),
        "member_type": CONSUMER_MEMBER,
    }


def _assignment(assigned: Assigned, names: Mapping[UUID, str]) -> dict[str, Any]:
    topics = [
        {"topic_id": topic, "topic_name": names[topic], "partitions": sorted(partitions)}
        for topic, partitions in assigned.items()
        if topic in names
    ]
    return {"topic_partitions": topics}
