"""ISR proposals on their way to the controller (AlterPartition, version 3), many per request.

A proposal is retried until the controller gives a definite answer or newer metadata overtakes it:
while its fate is unknown, the high watermark waits for everyone who may be in the ISR.
"""

import asyncio
import logging
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.background import Tasks, log_failure
from broker.clock import Clock
from broker.protocol import codec
from broker.replication.partition.effects import ProposeIsr
from broker.replication.partition.events import IsrCommitted, IsrRejected
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects
from broker.replication.ports import AlterPartitionPort

log = logging.getLogger(__name__)

ALTER_PARTITION: Final = 56
ALTER_PARTITION_VERSION: Final = 3
RETRY_MS: Final = 100
PROPOSALS_MAX: Final = 1_000
"""Of one request: to build and to decide 10,000 would hold up this node and the controller for
half a second each."""

_NOT_APPLIED: Final = frozenset(
    {
        ErrorCode.operation_not_attempted,
        ErrorCode.invalid_request,
        ErrorCode.ineligible_replica,
    }
)
_METADATA_DECIDES: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.unknown_topic_id,
        ErrorCode.new_leader_elected,
    }
)
"""The controller is ahead of us; the metadata on its way settles it."""


class AlterPartitionManager:
    """One AlterPartition request at a time, carrying what was proposed meanwhile."""

    def __init__(
        self,
        *,
        node_id: int,
        replicas: PartitionEffects,
        controller: AlterPartitionPort,
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._waiting: dict[tuple[bytes, int], Partition] = {}
        self._tasks = Tasks("keeper of the in-sync replicas", log_failure)

    def propose(self, partition: Partition, proposal: ProposeIsr) -> None:
        """Take a proposal; the partition's state keeps it until it is answered."""
        log.info(
            "%s-%d: proposing ISR %s for %s (leader epoch %d)",
            partition.topic,
            partition.partition,
            proposal.isr,
            partition.isr,
            proposal.leader_epoch,
        )
        self._waiting[partition.key] = partition
        if not self._tasks:
            self._tasks.keep(self._run)

    async def close(self) -> None:
        """Stop; proposals without answer are forgotten."""
        self._waiting.clear()
        await self._tasks.stop()

    async def _run(self) -> None:
        while self._waiting:
            batch = dict(islice(self._waiting.items(), PROPOSALS_MAX))
            for key in batch:
                del self._waiting[key]
            proposals = {
                key: (partition, partition.state.proposed)
                for key, partition in batch.items()
                if partition.state.proposed is not None and key in self._replicas.by_id
            }
            is_settled = not proposals
            try:
                is_settled = is_settled or await self._send(proposals)
            finally:
                if not is_settled:
                    self._waiting = batch | self._waiting
            if not is_settled:
                await asyncio.sleep(RETRY_MS / 1000)

    async def _send(self, proposals: dict[tuple[bytes, int], tuple[Partition, Any]]) -> bool:
        """Whether every proposal is settled (or will be by metadata)."""
        try:
            response = await self._controller.submit(
                ALTER_PARTITION, ALTER_PARTITION_VERSION, self._build(proposals), lane="isr"
            )
        except OSError as error:
            log.info("AlterPartition has no answer yet: %s", error)
            return False
        if response.error_code != ErrorCode.none:
            log.info("AlterPartition refused: %s", response.error_code)
            return False
        answers = {
            (topic.topic_id.bytes, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }
        settled = [
            self._settle(partition, proposal, answers.get(key))
            for key, (partition, proposal) in proposals.items()
        ]
        return all(settled)

    def _build(self, proposals: dict[tuple[bytes, int], tuple[Partition, Any]]) -> Any:
        topics: dict[Any, list[dict[str, Any]]] = {}
        for partition, proposal in proposals.values():
            topics.setdefault(partition.topic_id, []).append(
                {
                    "partition_index": partition.partition,
                    "leader_epoch": proposal.leader_epoch,
                    "new_isr_with_epochs": [
                        {"broker_id": r, "broker_epoch": proposal.broker_epochs.get(r, -1)}
                        for r in proposal.isr
                    ],
                    "leader_recovery_state": 0,
                    "partition_epoch": proposal.partition_epoch,
                }
            )
        return codec.build_request(
            ALTER_PARTITION,
            ALTER_PARTITION_VERSION,
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[{"topic_id": t, "partitions": rows} for t, rows in topics.items()],
        )

    def _settle(self, partition: Partition, proposal: ProposeIsr, answer: Any) -> bool:
        if answer is None:
            return False
        now_ms = self._clock.monotonic_ms()
        code = answer.error_code
        if code == ErrorCode.none:
            committed = IsrCommitted(
                isr=tuple(answer.isr),
                leader_epoch=answer.leader_epoch,
                partition_epoch=answer.partition_epoch,
                now_ms=now_ms,
            )
            self._replicas.apply(partition, committed)
        elif code in _NOT_APPLIED:
            rejected = IsrRejected(partition_epoch=proposal.partition_epoch, now_ms=now_ms)
            self._replicas.apply(partition, rejected)
        else:
            log.info("%s-%d: ISR not accepted: %s", partition.topic, partition.partition, code)
        return code == ErrorCode.none or code in _NOT_APPLIED or code in _METADATA_DECIDES
