"""ElectLeaders, versions 0-2.

Behaviour: executed by the active controller; type 0 preferred, type 1 unclean (only partitions
without a leader). Without partitions all are tried, and only changes and failures answered.
Errors: ELECTION_NOT_NEEDED 84, PREFERRED_LEADER_NOT_AVAILABLE 80,
ELIGIBLE_LEADERS_NOT_AVAILABLE 83.
"""

from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import in_thread_if_large
from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.decision import Decision, Verdict
from broker.controller.elections import (
    ElectLeaders,
    TopicPartition,
    all_partitions,
    decide_elect_leaders,
)
from broker.handlers.controller_apis import controller_api, run_in_steps, verdict_fields
from broker.metadata.acls import Operation
from broker.metadata.image import MetadataImage
from broker.protocol import codec

API_KEY: Final = 43
PREFERRED: Final = 0
UNCLEAN: Final = 1
VERDICT_BYTES: Final = 10
"""Of one partition in an answer, at least."""

Verdicts = dict[TopicPartition, Verdict[int]]


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    results = [
        {
            "topic": topic.topic,
            "partition_result": [
                {"partition_id": p, "error_code": error, "error_message": reason}
                for p in topic.partitions
            ],
        }
        for topic in message.topic_partitions or ()
    ]
    return codec.build_response(
        API_KEY, version, error_code=error, replica_election_results=results
    )


@controller_api(API_KEY, versions=(0, 2), cluster_operation=Operation.ALTER, refuse=_refuse)
async def execute_elect_leaders(active: ActiveController, request: ControllerRequest) -> Any:
    """Elect leaders as the active controller."""
    message, version = request.message, request.api_version
    election_type = getattr(message, "election_type", PREFERRED)
    if election_type not in (PREFERRED, UNCLEAN):
        reason = f"There is no election type {election_type}."
        return _refuse(version, message, ErrorCode.invalid_request, reason)
    is_named = message.topic_partitions is not None
    wanted = (
        [(t.topic, int(p)) for t in message.topic_partitions for p in t.partitions]
        if is_named
        else [(it.topic, it.partition) for it in all_partitions(active.image)]
    )

    def decide(step: Sequence[TopicPartition], image: MetadataImage) -> Decision[Verdicts]:
        is_unclean = election_type == UNCLEAN
        command = ElectLeaders(is_unclean=is_unclean, partitions=step, is_named=is_named)
        return decide_elect_leaders(command, image)

    verdicts = await run_in_steps(active.run, wanted, lambda it: it, decide, records=0)
    return await in_thread_if_large(len(verdicts) * VERDICT_BYTES, _answer, version, verdicts)


def _answer(version: int, verdicts: Verdicts) -> Any:
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for (topic, partition), verdict in verdicts.items():
        by_topic.setdefault(topic, []).append(
            {"partition_id": partition, **verdict_fields(verdict)}
        )
    results = [{"topic": topic, "partition_result": items} for topic, items in by_topic.items()]
    return codec.build_response(
        API_KEY, version, error_code=ErrorCode.none, replica_election_results=results
    )
