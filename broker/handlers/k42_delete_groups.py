"""DeleteGroups, versions 0-2.

Behaviour: removes groups without members, with their offsets; one verdict per group, however often
it is named.
"""

from typing import Any

from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.protocol import codec

API_KEY = 42


@handles(api_key=API_KEY, versions=(0, 2))
async def handle_delete_groups(request: Request, node: NodeServices) -> Any:
    """Delete each group that is empty."""
    results = []
    for group_id in dict.fromkeys(request.message.groups_names):
        error = await node.groups.offsets.delete_group(group_id)
        results.append({"group_id": group_id, "error_code": error.code})
    return codec.build_response(API_KEY, request.api_version, results=results)
