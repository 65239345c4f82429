"""SyncGroup, versions 0-5.

Behaviour: the leader brings the assignment; everybody is answered with his part once it is stored
in __consumer_offsets.
Notes: from v5 the protocol type and name are mandatory and must be the group's.
"""

from typing import Any

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_events import SyncRequested, SyncResult
from broker.handlers.registry import Right, handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 14
MANDATORY_PROTOCOL_VERSION = 5


@handles(
    api_key=API_KEY,
    versions=(0, 5),
    rights=(Right(Operation.READ, ResourceKind.GROUP, "group_id"),),
)
async def handle_sync_group(request: Request, node: NodeServices) -> Any:
    """Wait for the assignment of the running generation."""
    message, version = request.message, request.api_version
    event = _event(message, node)
    is_named = event.protocol_type is not None and event.protocol_name is not None
    if version >= MANDATORY_PROTOCOL_VERSION and not is_named:
        result = SyncResult(error=CoordinatorError.INCONSISTENT_GROUP_PROTOCOL)
    else:
        result = await node.groups.membership.sync(message.group_id, event)
    return codec.build_response(
        API_KEY,
        version,
        error_code=result.error.code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


def _event(message: Any, node: NodeServices) -> SyncRequested:
    return SyncRequested(
        token=node.groups.manager.take_token(),
        now_ms=node.clock.monotonic_ms(),
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation_id=message.generation_id,
        protocol_type=getattr(message, "protocol_type", None),
        protocol_name=getattr(message, "protocol_name", None),
        assignments=tuple((a.member_id, a.assignment) for a in message.assignments),
    )
