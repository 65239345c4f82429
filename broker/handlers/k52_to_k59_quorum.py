"""Vote 52, BeginQuorumEpoch 53, EndQuorumEpoch 54, FetchSnapshot 59, and Fetch 1 of the metadata
log: between our nodes only, each in one version (KIP-595, 630, 996, 1166).

Behaviour: translated, answered by the quorum, translated back.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation
from broker.protocol import codec
from broker.raft import wire
from broker.raft.errors import NotLeaderError


async def handle_quorum_request(request: Request, node: NodeServices) -> Any:
    """The quorum's answer to another voter; BROKER_NOT_AVAILABLE when it takes no part.

    A voter of another cluster, or one that names none, gets INCONSISTENT_CLUSTER_ID; Kafka hears
    the latter. Which node speaks is judged by the quorum (`states.requests`), by its word alone.
    """
    quorum = node.controller.quorum
    if request.message.cluster_id != quorum.cluster_id:
        return _refuse(request, ErrorCode.inconsistent_cluster_id)
    asked = wire.from_request(request.api_key, request.message)
    try:
        return wire.to_response(await quorum.handle(asked))
    except NotLeaderError:
        return _refuse(request, ErrorCode.broker_not_available)


def _refuse(request: Request, error: ErrorCode) -> Any:
    return codec.build_response(request.api_key, request.api_version, error_code=error)


for _api_key, _version in wire.VERSIONS.items():
    handles(
        api_key=_api_key,
        versions=(_version, _version),
        listener=Listener.CONTROLLER,
        cluster_operation=Operation.CLUSTER_ACTION,
    )(handle_quorum_request)
