"""AlterPartitionReassignments, versions 0-1 (KIP-455, KIP-860).

Behaviour: executed by the active controller. A target begins a move or replaces one in flight;
null replicas cancel it. The move ends with the ISR change that brings the target in sync.
Version 1's allow_replication_factor_change=false refuses a target of another size.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.reassignment import (
    AlterReassignments,
    Reassignment,
    decide_alter_reassignments,
)
from broker.handlers.controller_apis import controller_api, run_in_steps, verdict_fields
from broker.metadata.acls import Operation
from broker.protocol import codec

API_KEY: Final = 45


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return codec.build_response(
        API_KEY, version, error_code=error, error_message=reason, responses=[]
    )


@controller_api(API_KEY, versions=(0, 1), cluster_operation=Operation.ALTER, refuse=_refuse)
async def execute_alter_reassignments(active: ActiveController, request: ControllerRequest) -> Any:
    """Begin, replace or cancel moves as the active controller."""
    message, version = request.message, request.api_version
    allow_change = getattr(message, "allow_replication_factor_change", True)
    wanted = [
        Reassignment(
            topic=topic.name,
            partition=int(partition.partition_index),
            replicas=_replicas(partition),
        )
        for topic in message.topics
        for partition in topic.partitions
    ]
    keys = dict.fromkeys((each.topic, each.partition) for each in wanted)
    verdicts = await run_in_steps(
        active.run,
        wanted,
        lambda each: (each.topic, each.partition),
        lambda step, image: decide_alter_reassignments(
            AlterReassignments(reassignments=step, allow_replication_factor_change=allow_change),
            image,
            is_unclean_enabled=active.is_unclean_enabled,
        ),
    )
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for topic, partition in keys:
        verdict = verdicts[topic, partition]
        by_topic.setdefault(topic, []).append(
            {"partition_index": partition, **verdict_fields(verdict)}
        )
    responses = [{"name": topic, "partitions": items} for topic, items in by_topic.items()]
    return codec.build_response(
        API_KEY,
        version,
        allow_replication_factor_change=allow_change,
        error_code=ErrorCode.none,
        error_message=None,
        responses=responses,
    )


def _replicas(partition: Any) -> tuple[int, ...] | None:
    if partition.replicas is None:
        return None
    return tuple(int(replica) for replica in partition.replicas)
