"""One partition's log on one broker.

Everything happens in one thread. A call that fails loses nothing that was acknowledged: what it
left behind is cut off or finished by the next call that writes, or when the log is opened again.
Source: org.apache.kafka.storage.internals.log.UnifiedLog (Kafka 4.x).
"""

from dataclasses import replace
from typing import Final
from uuid import UUID

from broker.clock import Clock, SystemClock
from broker.log.checkpoint.checkpoint_format import (
    decode_partition_metadata,
    encode_partition_metadata,
    read_file,
    write_file,
)
from broker.log.checkpoint.file_writer import FileWriter
from broker.log.cleaner.compacted_log import CompactedLog
from broker.log.config import LogConfig
from broker.log.errors import StorageError
from broker.log.load.loader import LoadRequest, load_log
from broker.log.log_storage import Incoming, LogName, is_roll_due
from broker.log.log_validator import (
    AppendInfo,
    AppendPlan,
    LeaderRules,
    plan_as_follower,
    plan_as_leader,
)
from broker.log.names import PARTITION_METADATA_FILE, encode_uuid
from broker.log.producer.producer_snapshot import list_snapshots, remove_snapshots
from broker.log.producer.producer_state import ProducerState
from broker.log.segment.open_files import FilePool
from broker.protocol.records import NO_TIMESTAMP

_SYSTEM_CLOCK: Final = SystemClock()


class PartitionLog(CompactedLog):
    """The log of one partition on a broker; use `open`."""

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID | None = None,
        config: LogConfig | None = None,
        clock: Clock = _SYSTEM_CLOCK,
        files: FilePool | None = None,
        writer: FileWriter | None = None,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        is_clean: bool = False,
    ) -> "PartitionLog":
        """Open or create. Without `topic_id` the one in partition.metadata is taken; without
        `writer` leader epochs are written down at once.

        :raises StorageError: the disk refused, or the directory holds another topic's data.
        """
        request = LoadRequest(
            directory=directory,
            config=config or LogConfig(),
            files=FilePool() if files is None else files,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            is_clean=is_clean,
            now_ms=clock.wall_ms(),
            writer=writer,
        )
        loaded = load_log(request)
        name = LogName(topic, partition, settle_topic_id(directory, topic_id))
        return cls(request, loaded, clock, name)

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        is_from_client: bool = False,
    ) -> AppendInfo:
        """Give whole batches their offsets and write them.

        `is_from_client` adds the checks that a broker's own records need not pass: size,
        timestamps, control batches, keys of compacted topics.

        :raises RecordsRejectedError: a batch is not fit (see errors.py); nothing is written.
        :raises StorageError: the disk refused; nothing is written.
        :raises ForceFailedError: it is written, but not as durable as flush.messages asks.
        """
        rules = LeaderRules(
            config=self.config,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            is_from_client=is_from_client,
        )
        plan = plan_as_leader(records, self.log_end_offset, self._producers, rules)
        if plan.duplicate is not None:
            first = plan.duplicate
            return self._info(plan, first.base_offset, first.last_offset, first.max_timestamp)
        self._write(plan, now_ms)
        info = self._info(
            plan, plan.batches[0].base_offset, plan.next_offset - 1, plan.max_timestamp
        )
        return replace(info, log_append_time_ms=now_ms) if self.config.is_log_append_time else info

    def append_as_follower(self, records: memoryview) -> AppendInfo:
        """Write whole batches as their leader placed them; a partial one at the end is left out.

        :raises RecordsRejectedError: a batch is damaged or does not follow the log's end.
        :raises StorageError: the disk refused; nothing is written.
        """
        end = self.log_end_offset
        plan = plan_as_follower(records, end, self._producers)
        if not plan.batches:
            return self._info(plan, end, end - 1, NO_TIMESTAMP)
        self._write(plan, self._clock.wall_ms())
        return self._info(
            plan, plan.batches[0].base_offset, plan.next_offset - 1, plan.max_timestamp
        )

    def _info(
        self, plan: AppendPlan, base_offset: int, last_offset: int, max_timestamp: int
    ) -> AppendInfo:
        is_duplicate = plan.duplicate is not None
        return AppendInfo(
            base_offset=base_offset,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            log_append_time_ms=NO_TIMESTAMP,
            duplicate=is_duplicate,
            batches=0 if is_duplicate else len(plan.batches),
            bytes=0 if is_duplicate else plan.size_bytes,
            log_start_offset=self.log_start_offset,
        )

    def _write(self, plan: AppendPlan, now_ms: int) -> None:
        self._maker.settle()
        base_offset, last_offset = plan.batches[0].base_offset, plan.next_offset - 1
        incoming = Incoming(last_offset, plan.max_timestamp, plan.size_bytes, now_ms)
        if is_roll_due(self._segments[-1], incoming, self.config):
            self._roll_at(base_offset)
        for epoch, start_offset in plan.epochs:
            # Before the bytes: an epoch without records is harmless, the other way round is not.
            if epoch != self._epochs.latest_epoch:
                self._epochs.assign(epoch, start_offset)
        self._segments[-1].append(plan.buffers, plan.batches, self.config)
        if plan.producers is not None:
            plan.producers.commit()
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note the epoch of a new leader before it has any records.

        :raises StorageError: the disk refused.
        """
        self._epochs.assign(epoch, start_offset)

    def truncate_to(self, offset: int) -> bool:
        """Drop every batch that holds `offset` or more; False when there is none.

        A batch that straddles `offset` goes whole: the log then ends at its base offset.

        :raises StorageError: the disk refused.
        """
        if offset >= self.log_end_offset:
            # An epoch that got no records before its leader fell may stand at the very end.
            self._epochs.truncate_from_end(offset)
            return False
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            slot = self._slot(offset)
            while len(self._segments) > slot + 1:
                self._retire(self._segments[-1:])
                self._segments.pop()
            active = self._segments[slot]
            if not active.is_active:
                active.activate()
            active.truncate_to(offset)
        finally:
            self._end_moved_back()
        return True

    def _end_moved_back(self) -> None:
        producers, self._loaded_producers = self._loaded_producers, None
        end = self.log_end_offset
        self.recovery_point = min(self.recovery_point, end)
        self._cut_cleaned(end)
        self._truncations += 1
        self.log_start_offset = min(self.log_start_offset, end)
        self._epochs.truncate_from_end(end)
        if producers is not None and not producers.entries:
            stale = {offset for offset in list_snapshots(self.directory) if offset > end}
            remove_snapshots(self.directory, stale)
            self._loaded_producers = producers

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log then starts and ends at `offset`.

        :raises StorageError: the disk refused.
        """
        self._loaded_producers = None
        remove_snapshots(self.directory, set(list_snapshots(self.directory)))
        while len(self._segments) > 1:
            self._retire(self._segments[-1:])
            self._segments.pop()
        self._retire(self._segments)
        self._segments[:] = [self._maker.make(offset)]
        self._truncations += 1
        self.log_start_offset = self.recovery_point = offset
        self._cut_cleaned(0)
        self._epochs.clear()
        self._loaded_producers = ProducerState()


def settle_topic_id(directory: str, topic_id: UUID | None) -> UUID:
    """Read or write partition.metadata.

    :raises StorageError: the directory belongs to another topic of the same name.
    """
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    content = read_file(path)
    found = decode_partition_metadata(path, content) if content else None
    if found is None:
        if topic_id is not None:
            # An empty one after a power failure is written again with the id that the image has.
            write_file(path, encode_partition_metadata(topic_id), is_forced=False)
        return topic_id or UUID(int=0)
    if topic_id is not None and topic_id != found:
        raise StorageError(
            f"{directory} holds another topic's data",
            f"its topic id is {encode_uuid(found)}, not {encode_uuid(topic_id)}: a topic of this "
            "name was deleted and created again",
            "Move the directory away; the broker makes a new one",
        )
    return found
