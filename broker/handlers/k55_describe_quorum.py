"""DescribeQuorum, versions 0-2 (KIP-595, KIP-836).

Behaviour: answered by the leader of the metadata quorum, forwarded there by the others: epoch,
high watermark, and of each voter and observer the log end offset and when it last fetched and was
caught up.
"""

from collections.abc import Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.handlers.controller_apis import controller_api
from broker.metadata.acls import Operation
from broker.metadata.topic_names import METADATA_TOPIC
from broker.protocol import codec
from broker.raft.states.progress import Fetched

API_KEY: Final = 55


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return codec.build_response(
        API_KEY, version, error_code=error, error_message=reason, topics=[], nodes=[]
    )


@controller_api(API_KEY, versions=(0, 2), cluster_operation=Operation.DESCRIBE, refuse=_refuse)
async def execute_describe_quorum(active: ActiveController, request: ControllerRequest) -> Any:
    """Describe the quorum as its leader."""
    version = request.api_version
    quorum, progress = active.quorum, active.quorum.progress()
    partition = {
        "partition_index": 0,
        "error_code": ErrorCode.none,
        "error_message": "",
        "leader_id": quorum.config.node_id,
        "leader_epoch": quorum.core.epoch,
        "high_watermark": quorum.core.high_watermark,
        "current_voters": _replicas(progress.voters, active),
        "observers": _replicas(progress.observers, active),
    }
    nodes = [
        {
            "node_id": voter.id,
            "listeners": [{"name": "CONTROLLER", "host": voter.host, "port": voter.port}],
        }
        for voter in quorum.config.voters
    ]
    return codec.build_response(
        API_KEY,
        version,
        error_code=ErrorCode.none,
        error_message="",
        topics=[{"topic_name": METADATA_TOPIC, "partitions": [partition]}],
        nodes=nodes,
    )


def _replicas(found: Mapping[int, Fetched], active: ActiveController) -> list[dict[str, Any]]:
    return [
        {
            "replica_id": node_id,
            "log_end_offset": fetched.end_offset,
            "last_fetch_timestamp": active.wall_ms(fetched.fetched_ms),
            "last_caught_up_timestamp": active.wall_ms(fetched.caught_up_ms),
        }
        for node_id, fetched in sorted(found.items())
    ]
