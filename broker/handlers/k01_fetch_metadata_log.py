"""Fetch, version 18, on the controller listener: the metadata log between our nodes.

Behaviour: KRaft's fetch of `__cluster_metadata-0`. The fetch offset acknowledges what the
follower has flushed; waits up to max_wait for records or a higher high watermark (KIP-1166).
"""

from typing import Any, Final

from broker.handlers.quorum_requests import ask_quorum
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request

API_KEY: Final = 1


@handles(api_key=API_KEY, versions=(18, 18), listener=Listener.CONTROLLER)
async def handle_fetch_metadata_log(request: Request, node: NodeServices) -> Any:
    """Serve another voter's fetch."""
    return await ask_quorum(request, node)
