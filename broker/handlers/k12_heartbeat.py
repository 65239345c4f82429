"""Heartbeat, versions 0-4.

Behaviour: renews the member's session; REBALANCE_IN_PROGRESS tells it to join again.
Notes: v3 adds the group instance id, which fences a replaced static member.
"""

from typing import Any

from broker.coordinator.groups.group_events import HeartbeatReceived
from broker.handlers.registry import Right, handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 12


@handles(
    api_key=API_KEY,
    versions=(0, 4),
    rights=(Right(Operation.READ, ResourceKind.GROUP, "group_id"),),
)
def handle_heartbeat(request: Request, node: NodeServices) -> Any:
    """A sign of life, answered at once."""
    message = request.message
    event = HeartbeatReceived(
        token=node.groups.manager.take_token(),
        now_ms=node.clock.monotonic_ms(),
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation_id=message.generation_id,
    )
    result = node.groups.membership.heartbeat(message.group_id, event)
    error_code = result.error.code
    return codec.build_response(API_KEY, request.api_version, error_code=error_code)
