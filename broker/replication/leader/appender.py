"""Appending as leader: the hot path of Produce, without a task, future or timer per request."""

import logging
from collections.abc import Callable
from functools import partial

from broker.clock import Clock
from broker.log.errors import ForceFailedError, LogError, StorageError
from broker.log.log_validator import AppendInfo
from broker.replication.errors import (
    InvalidRequiredAcksError,
    NotEnoughReplicasError,
    NotLeaderError,
    UnknownPartitionError,
)
from broker.replication.partition.events import LeaderAppended
from broker.replication.partition.partition import Partition, PendingAppend
from broker.replication.partition.partition_effects import PartitionEffects

log = logging.getLogger(__name__)

ACKS_ALL = -1
PENDING_APPENDS_MAX = 50_000
"""So many producers of a partition wait for its replicas; further ones are refused until some of
these have been answered. They may have asked for timeouts of weeks, and be gone."""
OnDone = Callable[[AppendInfo], None]


class Appender:
    """Writes batches to local leaders and answers when they are acknowledged as asked."""

    def __init__(
        self, *, replicas: PartitionEffects, clock: Clock, are_records_checked: bool = True
    ) -> None:
        self._replicas = replicas
        self._are_records_checked = are_records_checked
        self._clock = clock

    def append(
        self,
        topic: str,
        partition: int,
        records: memoryview,
        *,
        acks: int,
        on_done: OnDone,
        timeout_ms: int,
        is_from_client: bool = False,
        verification: object = None,
    ) -> None:
        """Append whole batches; `on_done` is called once, now or when all in-sync replicas have
        them (acks -1), or when `timeout_ms` have passed (TimerWheel); where flush.messages asks for
        it, not before they are on this node's disk. `records` is not kept. `verification`: see
        PartitionLog.append_as_leader.
        """
        found = self._replicas.by_name.get((topic, partition))
        refusal = _refusal(found, acks) or self._replicas.disk.refusal
        if found is None or refusal is not None:
            on_done(AppendInfo(error=refusal))
            return
        if self._replicas.flushes.is_full(found.log):
            on_done(AppendInfo(error=NotEnoughReplicasError()))
            return
        try:
            info = found.log.append_as_leader(
                records,
                leader_epoch=found.state.leader_epoch,
                now_ms=self._clock.wall_ms(),
                is_from_client=is_from_client,
                are_records_checked=self._are_records_checked,
                verification=verification,
            )
        except LogError as error:
            if isinstance(error, StorageError) and not self._replicas.disk.note(error):
                log.error("append to %s-%d failed: %s", topic, partition, error)
            on_done(AppendInfo(log_start_offset=found.log.log_start_offset, error=error))
            return
        if not info.duplicate:
            self._appended(found, info)
        wait_ms = timeout_ms if acks == ACKS_ALL else None
        is_flush_due = self._replicas.flushes.is_due(found.log)
        if wait_ms is None and not is_flush_due:
            on_done(info)
            return
        pending = PendingAppend(info, on_done, found.append_expired)
        if is_flush_due:
            acknowledge = partial(self._forced, found, found.state.leader_epoch, pending, wait_ms)
            self._replicas.flushes.force(found.log, acknowledge)
        else:
            self._acknowledge(found, pending, wait_ms)

    def _forced(
        self,
        partition: Partition,
        leader_epoch: int,
        pending: PendingAppend,
        wait_ms: int | None,
        error: ForceFailedError | None,
    ) -> None:
        """The disk has the records, or refused them. A successor may have cut them off meanwhile:
        only acks 1 is answered by what was."""
        is_ours = partition.is_leader and partition.leader_epoch == leader_epoch
        is_here = self._replicas.by_id.get(partition.key) is partition
        if error is None and (wait_ms is None or (is_ours and is_here)):
            self._acknowledge(partition, pending, wait_ms)
        else:
            pending.finish(error or NotLeaderError())

    def _acknowledge(
        self, partition: Partition, pending: PendingAppend, wait_ms: int | None
    ) -> None:
        """Answer now, or when all in-sync replicas have it, within `wait_ms`."""
        if wait_ms is None or partition.state.high_watermark >= pending.required_offset:
            pending.finish(None)
            return
        partition.pending_appends.append(pending)
        self._replicas.wheel.add(pending, wait_ms)

    def _appended(self, partition: Partition, info: AppendInfo) -> None:
        partition.traffic.bytes_in += info.size_bytes
        event = LeaderAppended(info.last_offset + 1, self._clock.monotonic_ms())
        self._replicas.apply(partition, event)
        for session in partition.sessions:
            session.records_appended(partition)


def _refusal(partition: Partition | None, acks: int) -> Exception | None:
    """Why nothing may be appended at all."""
    if partition is None:
        return UnknownPartitionError()
    state = partition.state
    if not state.is_leader:
        return NotLeaderError()
    if acks == ACKS_ALL:
        has_room = len(partition.pending_appends) < PENDING_APPENDS_MAX
        return None if has_room and state.has_enough_replicas else NotEnoughReplicasError()
    return None if acks in (0, 1) else InvalidRequiredAcksError()
