"""DescribeGroups, versions 0-6.

Behaviour: state, protocol and members of each group, in the order asked; members' metadata and
assignments are shown while the group is Stable.
Notes: an unknown group is Dead without error up to v5, GROUP_ID_NOT_FOUND from v6 (KIP-1043).
What the principal may do to a group is listed when asked (v3).
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.describe_groups import GroupDescription, MemberDescription
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import OPERATIONS_OMITTED, Resource

API_KEY = 15
NOT_FOUND_VERSION = 6


@handles(api_key=API_KEY, versions=(0, 6))
async def handle_describe_groups(request: Request, node: NodeServices) -> LargeAnswer:
    """One description per group asked for; others go on in between."""
    message, version = request.message, request.api_version
    is_asked = getattr(message, "include_authorized_operations", False)
    slices, groups = Slices(), list[dict[str, Any]]()
    refused = await node.authorization.refused(
        request.context, Operation.DESCRIBE, ResourceKind.GROUP, message.groups
    )
    for group_id in message.groups:
        if group_id in refused:
            groups.append(_refuse(group_id))
            continue
        answer = _group_answer(node.groups.views.describe(group_id), version)
        resource = Resource(kind=ResourceKind.GROUP, name=group_id)
        operations = OPERATIONS_OMITTED
        if is_asked:
            operations = node.authorization.operations(request.context, resource)
        groups.append({**answer, "authorized_operations": operations})
        await slices.pause()
    entries = len(groups) + sum(len(group["members"]) for group in groups)
    return LargeAnswer(entries, groups=groups)


def _refuse(group_id: str) -> dict[str, Any]:
    empty = dict.fromkeys(("group_state", "protocol_type", "protocol_data"), "")
    error = ErrorCode.group_authorization_failed
    return {"error_code": error, "group_id": group_id, "members": [], **empty}


def _group_answer(group: GroupDescription, version: int) -> dict[str, Any]:
    error, reason = group.error.code, None
    if group.error is CoordinatorError.GROUP_ID_NOT_FOUND:
        reason = f"Group {group.group_id} not found."
        error = error if version >= NOT_FOUND_VERSION else ErrorCode.none
    return {
        "error_code": error,
        "error_message": reason,
        "group_id": group.group_id,
        "group_state": group.state or "",
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_name,
        "members": [_member_answer(member) for member in group.members],
    }


def _member_answer(member: MemberDescription) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": member.metadata,
        "member_assignment": member.assignment,
    }
