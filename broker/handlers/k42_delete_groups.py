"""DeleteGroups, versions 0-2.

Behaviour: removes groups without members, with their offsets; one verdict per group, however often
it is named.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind

API_KEY = 42


@handles(api_key=API_KEY, versions=(0, 2))
async def handle_delete_groups(request: Request, node: NodeServices) -> LargeAnswer:
    """Delete each group that is empty; others go on in between."""
    results, slices = list[dict[str, Any]](), Slices()
    names = dict.fromkeys(request.message.groups_names)
    refused = await node.authorization.refused(
        request.context, Operation.DELETE, ResourceKind.GROUP, names
    )
    for group_id in names:
        await slices.pause()
        if group_id in refused:
            denied = ErrorCode.group_authorization_failed
            results.append({"group_id": group_id, "error_code": denied})
            continue
        error = await node.groups.offsets.delete_group(group_id)
        results.append({"group_id": group_id, "error_code": error.code})
    return LargeAnswer(len(results), results=results)
