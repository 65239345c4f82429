"""JoinGroup, versions 0-9.

Behaviour: answered when the next generation of the group starts. From v4 a dynamic member without
an id is sent back with one (MEMBER_ID_REQUIRED, KIP-394); an instance id makes it static (v5,
KIP-345).
Notes: v0 has one timeout for session and rebalance; v9 may tell a static leader that came back to
skip the assignment (KIP-814). Before v7 the protocol name cannot be null.
"""

from typing import Any
from uuid import uuid4

from broker.coordinator.groups.group_events import GroupProtocol, JoinRequested
from broker.handlers.registry import Right, handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 11
MEMBER_ID_REQUIRED_VERSION = 4
NULLABLE_PROTOCOL_VERSION = 7
SKIP_ASSIGNMENT_VERSION = 9


@handles(
    api_key=API_KEY,
    versions=(0, 9),
    rights=(Right(Operation.READ, ResourceKind.GROUP, "group_id"),),
)
async def handle_join_group(request: Request, node: NodeServices) -> Any:
    """Wait for the generation that this member is part of."""
    message, version = request.message, request.api_version
    result = await node.groups.membership.join(message.group_id, _event(request, node))
    unknown_name = None if version >= NULLABLE_PROTOCOL_VERSION else ""
    return codec.build_response(
        API_KEY,
        version,
        error_code=result.error.code,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name or unknown_name,
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "metadata": member.metadata,
            }
            for member in result.members
        ],
    )


def _event(request: Request, node: NodeServices) -> JoinRequested:
    message, version = request.message, request.api_version
    instance = getattr(message, "group_instance_id", None)
    client_id = request.client_id or ""
    session_timeout_ms = _milliseconds(message.session_timeout)
    rebalance_timeout_ms = session_timeout_ms
    if version >= 1:
        rebalance_timeout_ms = _milliseconds(message.rebalance_timeout)
    return JoinRequested(
        token=node.groups.manager.take_token(),
        now_ms=node.clock.monotonic_ms(),
        member_id=message.member_id,
        new_member_id=f"{instance or client_id}-{uuid4()}",
        group_instance_id=instance,
        client_id=client_id,
        client_host=f"/{request.context.client_host}",
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocol_type=message.protocol_type,
        protocols=tuple(GroupProtocol(name=p.name, metadata=p.metadata) for p in message.protocols),
        requires_known_member_id=version >= MEMBER_ID_REQUIRED_VERSION,
        may_skip_assignment=version >= SKIP_ASSIGNMENT_VERSION,
    )


def _milliseconds(duration: Any) -> int:
    milliseconds: int = round(duration.total_seconds() * 1000)
    return milliseconds
