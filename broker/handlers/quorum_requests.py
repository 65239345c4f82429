"""Common parts of the voters' requests: translate, ask the quorum, translate back."""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.services import NodeServices, Request
from broker.protocol import codec
from broker.raft import wire
from broker.raft.errors import NotLeaderError


async def ask_quorum(request: Request, node: NodeServices) -> Any:
    """The quorum's answer to another voter; BROKER_NOT_AVAILABLE when it takes no part.

    A voter of another cluster gets INCONSISTENT_CLUSTER_ID, one that names none is heard
    (KafkaRaftClient.hasValidClusterId).
    """
    quorum = node.controller.quorum
    if request.message.cluster_id not in (None, quorum.cluster_id):
        return _refuse(request, ErrorCode.inconsistent_cluster_id)
    asked = wire.from_request(request.api_key, request.message)
    try:
        return wire.to_response(await quorum.handle(asked))
    except NotLeaderError:
        return _refuse(request, ErrorCode.broker_not_available)


def _refuse(request: Request, error: ErrorCode) -> Any:
    return codec.build_response(request.api_key, request.api_version, error_code=error)
