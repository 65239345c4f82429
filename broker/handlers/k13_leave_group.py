"""LeaveGroup, versions 0-5.

Behaviour: takes members out at once and rebalances the others; an id that was handed out but not
used yet can leave too.
Notes: from v3 several members, by member id or by instance id alone (tools); each has a verdict
of its own. Before, the one verdict is the response's. v5 carries a reason, which is not kept.
"""

from typing import Any

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_events import LeaveRequested, LeaveResult, MemberIdentity
from broker.handlers.registry import Right, handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 13
BATCHED_VERSION = 3


@handles(
    api_key=API_KEY,
    versions=(0, 5),
    rights=(Right(Operation.READ, ResourceKind.GROUP, "group_id"),),
)
def handle_leave_group(request: Request, node: NodeServices) -> Any:
    """Take members out of their group."""
    message, version = request.message, request.api_version
    event = LeaveRequested(
        token=node.groups.manager.take_token(),
        now_ms=node.clock.monotonic_ms(),
        members=_identities(message, version),
    )
    result = node.groups.membership.leave(message.group_id, event)
    members = [
        {
            "member_id": identity.member_id,
            "group_instance_id": identity.group_instance_id,
            "error_code": error.code,
        }
        for identity, error in result.members
    ]
    error_code = _response_error(result, version).code
    return codec.build_response(API_KEY, version, error_code=error_code, members=members)


def _identities(message: Any, version: int) -> tuple[MemberIdentity, ...]:
    if version < BATCHED_VERSION:
        return (MemberIdentity(member_id=message.member_id),)
    return tuple(
        MemberIdentity(member_id=member.member_id, group_instance_id=member.group_instance_id)
        for member in message.members
    )


def _response_error(result: LeaveResult, version: int) -> CoordinatorError:
    if result.error is CoordinatorError.NONE and version < BATCHED_VERSION:
        return result.members[0][1]
    return result.error
