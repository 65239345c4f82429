"""Whatever happens to a partition's log, it stays equal to a list of batches."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from broker.log.config import LogConfig
from broker.log.errors import OffsetOutOfRangeError, OutOfOrderSequenceError
from broker.log.partition_log import PartitionLog
from broker.protocol.records import iter_batch_headers
from tests.unit.broker.log.helpers import NOW_MS, FakeClock, batch, read_all

PRODUCER_ID = 7
# In memory where there is such a place: this is about states, not about a disk's speed.
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBatch:
    """A batch as it must be in the log; sequence -1 without producer."""

    base_offset: int
    count: int
    epoch: int
    timestamp: int
    sequence: int
    value: bytes

    @property
    def end_offset(self) -> int:
        """The offset after its last record."""
        return self.base_offset + self.count

    def encode(self) -> bytes:
        """Its bytes on disk."""
        return _encode(self)


@lru_cache(maxsize=10_000)
def _encode(model: ModelBatch) -> bytes:
    is_sequenced = model.sequence >= 0
    return bytes(
        batch(
            model.count,
            value=model.value,
            timestamp=model.timestamp,
            base_offset=model.base_offset,
            leader_epoch=model.epoch,
            producer_id=PRODUCER_ID if is_sequenced else -1,
            producer_epoch=0 if is_sequenced else -1,
            base_sequence=model.sequence,
        )
    )


class LogMachine(RuleBasedStateMachine):
    """Appends, rolls, cuts, restarts and crashes, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="partiscope-log-", dir=SCRATCH)
        self.batches: list[ModelBatch] = []
        self.end = 0
        self.start = 0
        self.flushed = 0
        self.epoch = 0
        self.clock = FakeClock()

    @initialize(
        segment_bytes=st.sampled_from([200, 500, 2000, 1 << 20]),
        index_interval_bytes=st.sampled_from([0, 100, 4096]),
        segment_index_bytes=st.sampled_from([48, 1 << 16]),
    )
    def open_first(
        self, segment_bytes: int, index_interval_bytes: int, segment_index_bytes: int
    ) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            segment_index_bytes=segment_index_bytes,
        )
        self.log = self._open(is_clean=False)

    def _open(self, *, is_clean: bool) -> PartitionLog:
        return PartitionLog.open(
            f"{self.directory}/orders-0",
            topic="orders",
            partition=0,
            config=self.config,
            clock=self.clock,
            recovery_point=self.flushed,
            log_start_offset=self.start,
            is_clean=is_clean,
        )

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    # What clients and other brokers do

    @rule(
        count=st.integers(1, 5),
        size=st.integers(0, 40),
        timestamp=st.integers(NOW_MS - 50, NOW_MS + 50),
        is_sequenced=st.booleans(),
        is_new_epoch=st.booleans(),
    )
    def append(
        self, count: int, size: int, timestamp: int, is_sequenced: bool, is_new_epoch: bool
    ) -> None:
        self.epoch += is_new_epoch
        sequence = self._next_sequence() if is_sequenced else -1
        added = ModelBatch(
            base_offset=self.end,
            count=count,
            epoch=self.epoch,
            timestamp=timestamp,
            sequence=sequence,
            value=bytes(size),
        )
        if len(added.encode()) > self.config.segment_bytes:
            return
        info = self.log.append_as_leader(
            memoryview(added.encode()), leader_epoch=self.epoch, now_ms=NOW_MS
        )
        assert not info.duplicate
        assert (info.base_offset, info.last_offset) == (self.end, self.end + count - 1)
        self._take(added)

    def _take(self, added: ModelBatch) -> None:
        self.batches.append(added)
        self.end = added.end_offset

    def _sequenced(self) -> list[ModelBatch]:
        return [each for each in self.batches if each.sequence >= 0]

    def _next_sequence(self) -> int:
        sequenced = self._sequenced()
        return sequenced[-1].sequence + sequenced[-1].count if sequenced else 0

    @precondition(lambda self: self._sequenced())
    @rule()
    def repeat_the_last_sequenced_batch(self) -> None:
        repeated = self._sequenced()[-1]
        info = self.log.append_as_leader(
            memoryview(repeated.encode()), leader_epoch=self.epoch, now_ms=NOW_MS
        )
        assert info.duplicate
        assert (info.base_offset, info.last_offset) == (
            repeated.base_offset,
            repeated.end_offset - 1,
        )

    @precondition(lambda self: self._sequenced())
    @rule(gap=st.integers(1, 3))
    def skip_a_sequence(self, gap: int) -> None:
        records = batch(
            producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=self._next_sequence() + gap
        )
        with pytest.raises(OutOfOrderSequenceError):
            self.log.append_as_leader(records, leader_epoch=self.epoch, now_ms=NOW_MS)

    @rule(gap=st.integers(0, 20), count=st.integers(1, 3))
    def replicate(self, gap: int, count: int) -> None:
        added = ModelBatch(
            base_offset=self.end + gap,
            count=count,
            epoch=self.epoch,
            timestamp=NOW_MS,
            sequence=-1,
            value=b"r",
        )
        self.log.append_as_follower(memoryview(added.encode()))
        self._take(added)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self._last_end()

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(target)
        self._cut_model(target)
        self._settle_end()

    def _cut_model(self, target: int) -> None:
        gone = [each for each in self.batches if each.end_offset > target]
        self.batches = [each for each in self.batches if each.end_offset <= target]
        if target < self.end:
            self.end = min([target, *(each.base_offset for each in gone)])
        self.start = min(self.start, self.end)
        self.flushed = min(self.flushed, self._last_end())

    def _last_end(self) -> int:
        """The end that can be told from the batches alone."""
        return self.batches[-1].end_offset if self.batches else 0

    @rule(offset=st.integers(0, 1000))
    def start_anew(self, offset: int) -> None:
        assume(offset % 10 == 0)
        self.log.truncate_fully_and_start_at(offset)
        self.batches = []
        self.start = self.end = offset
        self.flushed = 0

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.increment_log_start_offset(self.start)

    @rule()
    def delete_old_segments(self) -> None:
        self.log.delete_old_segments(high_watermark=self.end, now_ms=NOW_MS)
        # It may have moved over a gap, never over a record.
        visible = [each.base_offset for each in self.batches if each.end_offset > self.start]
        assert self.start <= self.log.log_start_offset <= self.end
        if visible:
            assert self.log.log_start_offset <= max(self.start, visible[0])
        self.start = self.log.log_start_offset

    # What happens to the process

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.flushed = self._last_end()
        self._start_anew_when_nothing_is_visible()
        self.log = self._open(is_clean=True)
        assert self.log.findings == ()
        self._settle_end()

    def _start_anew_when_nothing_is_visible(self) -> None:
        """An opened log that ends below its start is emptied, and begins there."""
        if self._last_end() < self.start:
            self.batches.clear()
            self.flushed = 0

    def _settle_end(self) -> None:
        """Where a gap is all there is at the end, how much of it is remembered is left open."""
        assert self._last_end() <= self.log.log_end_offset <= self.end
        self.end = self.log.log_end_offset
        self.start = min(self.start, self.end)

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Lose any number of bytes behind what was forced to the disk."""
        self.log.abandon()
        lost = data.draw(st.integers(0, self._unforced_bytes()))
        self._cut_files(lost)
        self.log = self._open(is_clean=False)
        self._forget_lost(lost)

    def _unforced_bytes(self) -> int:
        written = sum(len(b.encode()) for b in self.batches if b.base_offset >= self.flushed)
        return min(written, self.log.size_bytes)

    def _cut_files(self, lost: int) -> None:
        for path in sorted(Path(self.directory, "orders-0").glob("*.log"), reverse=True):
            size = path.stat().st_size
            os.truncate(path, max(0, size - lost))
            lost = max(0, lost - size)

    def _forget_lost(self, lost_bytes: int) -> None:
        """Batches go from the end, whole ones, and no more than the bytes that were lost."""
        while lost_bytes > 0:
            lost_bytes -= len(self.batches.pop().encode())
        self._start_anew_when_nothing_is_visible()
        assert self._last_end() >= self.flushed
        self._settle_end()

    # What must always hold

    @invariant()
    def ends_are_equal(self) -> None:
        assert self.log.log_end_offset == self.end
        assert self.log.log_start_offset == self.start

    @invariant()
    def bytes_are_equal(self) -> None:
        visible = [each for each in self.batches if each.end_offset > self.start]
        expected = b"".join(each.encode() for each in visible)
        assert read_all(self.log) == expected
        sizes = [each.size_bytes for each in self.log.segments()]
        directory = Path(self.directory, "orders-0")
        assert sizes == [path.stat().st_size for path in sorted(directory.glob("*.log"))]

    @invariant()
    def epochs_rise_and_cover_the_log(self) -> None:
        starts = self.log.epochs.entries
        assert list(starts) == sorted(set(starts))
        for each in self.batches:
            if each.base_offset >= self.start:
                assert self.log.epochs.epoch_at(each.base_offset) == each.epoch

    @rule(data=st.data(), max_bytes=st.integers(1, 1000))
    def read_anywhere(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start - 1, self.end + 1))
        max_offset = data.draw(st.integers(self.start, self.end))
        if not self.start <= offset <= self.end:
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, max_bytes=max_bytes, max_offset=max_offset)
            return
        found = self.log.read(offset, max_bytes=max_bytes, max_offset=max_offset)
        expected = [b for b in self.batches if b.end_offset > offset and b.end_offset <= max_offset]
        got = found.read()
        assert b"".join(each.encode() for each in expected).startswith(got)
        assert len(got) == found.size_bytes
        if expected and offset < max_offset:
            assert len(got) >= len(expected[0].encode())
            assert len(got) <= max(max_bytes, len(expected[0].encode()))
            assert sum(1 for _ in iter_batch_headers(got)) >= 1

    @rule(timestamp=st.integers(NOW_MS - 60, NOW_MS + 60))
    def look_for_a_timestamp(self, timestamp: int) -> None:
        found = self.log.offset_for_timestamp(timestamp, max_offset=self.end)
        expected = [
            each.base_offset + n
            for each in self.batches
            for n in range(each.count)
            if each.timestamp + n >= timestamp and each.base_offset + n >= self.start
        ]
        assert (found.offset if found else None) == (expected[0] if expected else None)


LogMachine.TestCase.settings = settings(
    max_examples=50,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestLog = LogMachine.TestCase
