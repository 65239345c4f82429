"""Vote, version 2, between our nodes only.

Behaviour: a voter's vote, or whether it would give one (a pre-vote, KIP-996).
"""

from typing import Any, Final

from broker.handlers.quorum_requests import ask_quorum
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request

API_KEY: Final = 52


@handles(api_key=API_KEY, versions=(2, 2), listener=Listener.CONTROLLER)
async def handle_vote(request: Request, node: NodeServices) -> Any:
    """Answer another voter."""
    return await ask_quorum(request, node)
