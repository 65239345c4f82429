"""EndQuorumEpoch, version 1, between our nodes only.

Behaviour: a leader that resigns asks another voter to elect at once.
"""

from typing import Any, Final

from broker.handlers.quorum_requests import ask_quorum
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request

API_KEY: Final = 54


@handles(api_key=API_KEY, versions=(1, 1), listener=Listener.CONTROLLER)
async def handle_end_quorum_epoch(request: Request, node: NodeServices) -> Any:
    """Answer another voter."""
    return await ask_quorum(request, node)
