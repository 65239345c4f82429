"""FetchSnapshot, version 1, between our nodes only.

Behaviour: bytes of a snapshot of the metadata log, for a voter whose log ends before ours starts
(KIP-630). SNAPSHOT_NOT_FOUND when a newer one has replaced it: the voter asks by Fetch again.
"""

from typing import Any, Final

from broker.handlers.quorum_requests import ask_quorum
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request

API_KEY: Final = 59


@handles(api_key=API_KEY, versions=(1, 1), listener=Listener.CONTROLLER)
async def handle_fetch_snapshot(request: Request, node: NodeServices) -> Any:
    """Serve another voter."""
    return await ask_quorum(request, node)
