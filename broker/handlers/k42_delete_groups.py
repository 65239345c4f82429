"""DeleteGroups, versions 0-2.

Behaviour: removes groups without members, with their offsets; one verdict per group, however often
it is named.
"""

from broker.background import Slices
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request

API_KEY = 42


@handles(api_key=API_KEY, versions=(0, 2))
async def handle_delete_groups(request: Request, node: NodeServices) -> LargeAnswer:
    """Delete each group that is empty; others go on in between."""
    results, slices = [], Slices()
    for group_id in dict.fromkeys(request.message.groups_names):
        await slices.pause()
        error = await node.groups.offsets.delete_group(group_id)
        results.append({"group_id": group_id, "error_code": error.code})
    return LargeAnswer(len(results), results=results)
