"""ListGroups, versions 0-5.

Behaviour: the groups that this broker coordinates; tools ask every broker.
Notes: v4 filters by state, v5 by type; both compare without regard to case.
"""

from broker.coordinator.errors import CoordinatorError
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER

API_KEY = 16


async def _hidden(request: Request, node: NodeServices, groups: list[str]) -> frozenset[str]:
    """Groups that the principal may not see; who may describe the cluster sees all."""
    authorization, context, right = node.authorization, request.context, Operation.DESCRIBE
    if authorization.is_allowed(context, right, CLUSTER, is_told=False):
        return frozenset()
    return await authorization.refused(context, right, ResourceKind.GROUP, groups, is_told=False)


@handles(api_key=API_KEY, versions=(0, 5))
async def handle_list_groups(request: Request, node: NodeServices) -> LargeAnswer:
    """Groups on this broker, filtered."""
    message = request.message
    listings = node.groups.views.list_groups(
        getattr(message, "states_filter", ()), getattr(message, "types_filter", ())
    )
    if isinstance(listings, CoordinatorError):
        return LargeAnswer(0, error_code=listings.code)
    hidden = await _hidden(request, node, [listing.group_id for listing in listings])
    groups = [
        {
            "group_id": listing.group_id,
            "protocol_type": listing.protocol_type,
            "group_state": str(listing.state),
            "group_type": listing.group_type,
        }
        for listing in listings
        if listing.group_id not in hidden
    ]
    return LargeAnswer(len(groups), groups=groups)
