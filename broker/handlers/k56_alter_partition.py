"""AlterPartition, versions 2-3, between our nodes only.

Behaviour: leaders ask the active controller for ISR changes; fenced by broker epoch, leader
epoch and partition epoch; ends a reassignment whose target has come in sync.
"""

from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.alter_partition import (
    AlterPartition,
    IsrChange,
    IsrMember,
    IsrVerdicts,
    decide_alter_partition,
)
from broker.controller.controller_channel import ControllerRequest
from broker.controller.decision import Accepted, Verdict
from broker.handlers.controller_apis import error_code, node_api
from broker.metadata.image import PartitionImage
from broker.protocol import codec

API_KEY: Final = 56


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    return codec.build_response(API_KEY, version, error_code=error, topics=[])


@node_api(API_KEY, versions=(2, 3), refuse=_refuse)
async def execute_alter_partition(active: ActiveController, request: ControllerRequest) -> Any:
    """Change ISRs as the active controller."""
    message, version = request.message, request.api_version
    command = AlterPartition(
        broker_id=int(message.broker_id),
        broker_epoch=int(message.broker_epoch),
        changes=[
            _change(topic.topic_id, partition)
            for topic in message.topics
            for partition in topic.partitions
        ],
    )
    verdicts: IsrVerdicts = await active.run(lambda image: decide_alter_partition(command, image))
    by_topic: dict[UUID, list[dict[str, Any]]] = {}
    for (topic_id, partition), verdict in verdicts.items():
        by_topic.setdefault(topic_id, []).append(_partition_fields(partition, verdict))
    topics = [{"topic_id": id_, "partitions": items} for id_, items in by_topic.items()]
    return codec.build_response(API_KEY, version, error_code=ErrorCode.none, topics=topics)


def _change(topic_id: UUID, partition: Any) -> IsrChange:
    if hasattr(partition, "new_isr_with_epochs"):
        isr = tuple(
            IsrMember(broker_id=int(m.broker_id), broker_epoch=int(m.broker_epoch))
            for m in partition.new_isr_with_epochs
        )
    else:
        isr = tuple(IsrMember(broker_id=int(id_)) for id_ in partition.new_isr)
    return IsrChange(
        topic_id=topic_id,
        partition=int(partition.partition_index),
        leader_epoch=int(partition.leader_epoch),
        partition_epoch=int(partition.partition_epoch),
        new_isr=isr,
    )


def _partition_fields(number: int, verdict: Verdict[PartitionImage]) -> dict[str, Any]:
    if not isinstance(verdict, Accepted):
        return {"partition_index": number, "error_code": error_code(verdict.error)}
    partition = verdict.value
    return {
        "partition_index": number,
        "error_code": ErrorCode.none,
        "leader_id": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "isr": partition.isr,
        "partition_epoch": partition.partition_epoch,
    }
