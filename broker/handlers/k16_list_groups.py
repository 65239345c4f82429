"""ListGroups, versions 0-5.

Behaviour: the groups that this broker coordinates; tools ask every broker.
Notes: v4 filters by state, v5 by type; both compare without regard to case.
"""

from broker.coordinator.errors import CoordinatorError
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request

API_KEY = 16


@handles(api_key=API_KEY, versions=(0, 5))
async def handle_list_groups(request: Request, node: NodeServices) -> LargeAnswer:
    """Groups on this broker, filtered."""
    message = request.message
    listings = node.groups.views.list_groups(
        getattr(message, "states_filter", ()), getattr(message, "types_filter", ())
    )
    if isinstance(listings, CoordinatorError):
        return LargeAnswer(0, error_code=listings.code)
    groups = [
        {
            "group_id": listing.group_id,
            "protocol_type": listing.protocol_type,
            "group_state": str(listing.state),
            "group_type": listing.group_type,
        }
        for listing in listings
    ]
    return LargeAnswer(len(groups), groups=groups)
