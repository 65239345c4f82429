"""Compaction, whatever was written and wherever it is interrupted: no newest value is lost."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.log.cleaner.cleaning_run import Compaction
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.protocol.records import (
    NewRecord,
    Record,
    build_batch,
    iter_batch_headers,
    iter_records,
)
from tests.unit.broker.log.helpers import NOW_MS, FakeClock, read_all

SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None
DELETE_RETENTION_MS = 1000
PRODUCER_ID = 7
MOVING = ("rename", "unlink", "fsync", "ftruncate", "utime")
"""What a run asks of the file system beside writing; a crash may come before each of them."""

Write = list[tuple[int, bytes | None]]


class Crash(BaseException):
    """The process ends here."""


@contextmanager
def crash_before(step: int) -> Iterator[None]:
    """End the process before the file system's `step`-th operation; 0 is the first."""
    originals: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in MOVING}
    left = step

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Crash
            left -= 1
            return original(*args, **kwargs)

        return call

    for name, original in originals.items():
        setattr(os, name, wrap(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def compact(log: PartitionLog, stable_offset: int) -> bool:
    """A whole run in this thread; False when none is due."""
    run = log.plan_compaction(stable_offset=stable_offset, now_ms=log._clock.wall_ms())
    if run is None:
        return False
    finish(log, run)
    return True


def finish(log: PartitionLog, run: Compaction) -> None:
    while (group := run.next_group(lambda: None)) is not None:
        assert log.cleaning.swap_in(group, run.settings)
    log.cleaning.cleaned_to = run.end_offset


def records_of(log: PartitionLog) -> list[Record]:
    content = memoryview(read_all(log))
    return [
        record
        for header, position in iter_batch_headers(content)
        for record in iter_records(content[position : position + header.size_bytes])
    ]


def newest_of(records: list[Record]) -> dict[bytes, Record]:
    """By key; a tombstone counts as none."""
    newest = {record.key or b"": record for record in records}
    return {key: record for key, record in newest.items() if record.value is not None}


class CompactionMachine(RuleBasedStateMachine):
    """Writes keys, cuts, compacts, crashes in the middle; `history` is every record written."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="partiscope-compaction-", dir=SCRATCH)
        self.clock = FakeClock()
        self.history: list[Record] = []
        self.sequence = 0
        self.written_cleaned_to = 0
        self.stable_offset = 0

    @initialize(
        segment_bytes=st.sampled_from([300, 700, 3000]),
        ratio=st.sampled_from([0.0, 0.5]),
        index_interval_bytes=st.sampled_from([0, 200]),
    )
    def open_first(self, segment_bytes: int, ratio: float, index_interval_bytes: int) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            min_cleanable_dirty_ratio=ratio,
            cleanup_policy=frozenset({"compact"}),
            delete_retention_ms=DELETE_RETENTION_MS,
            index_interval_bytes=index_interval_bytes,
            file_delete_delay_ms=0,
        )
        self.log = self._open(is_clean=False)

    def _open(self, *, is_clean: bool) -> PartitionLog:
        log = PartitionLog.open(
            f"{self.directory}/orders-0",
            topic="orders",
            partition=0,
            config=self.config,
            clock=self.clock,
            recovery_point=self._recovery_point(),
            is_clean=is_clean,
        )
        log.cleaning.cleaned_to = self.written_cleaned_to
        return log

    def _recovery_point(self) -> int:
        return self.log.recovery_point if hasattr(self, "log") else 0

    @rule(
        writes=st.lists(
            st.tuples(st.integers(0, 5), st.none() | st.binary(max_size=20)), min_size=1, max_size=5
        ),
        codec=st.integers(0, 4),
        is_sequenced=st.booleans(),
    )
    def append(self, writes: Write, codec: int, is_sequenced: bool) -> None:
        batch = build_batch(
            [
                NewRecord(
                    key=b"key-%d" % key,
                    value=value,
                    timestamp=self.clock.now_ms + n,
                    headers=(("n", b"%d" % n),),
                )
                for n, (key, value) in enumerate(writes)
            ],
            codec=codec,
            producer_id=PRODUCER_ID if is_sequenced else -1,
            producer_epoch=0 if is_sequenced else -1,
            base_sequence=self.sequence if is_sequenced else -1,
        )
        if len(batch) > self.config.segment_bytes:
            return
        self.sequence += len(writes) if is_sequenced else 0
        base = self.log.log_end_offset
        self.log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=self.clock.now_ms)
        appended = self.log.read_bytes(base, max_bytes=1 << 20, max_offset=base + len(writes))
        self.history += list(iter_records(appended))

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(ms=st.integers(1, 2 * DELETE_RETENTION_MS))
    def wait(self, ms: int) -> None:
        self.clock.now_ms += ms

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """What compaction looked at was replicated, and is never cut."""
        self.log.truncate_to(data.draw(st.integers(self.stable_offset, self.log.log_end_offset)))
        end = self.log.log_end_offset
        self.history = [record for record in self.history if record.offset < end]
        self.sequence = self._next_sequence()

    def _next_sequence(self) -> int:
        entry = self.log.producers.state.entries.get(PRODUCER_ID)
        return entry.last_sequence + 1 if entry else 0

    def _settle(self) -> None:
        """Everything is replicated and on the disk."""
        self.log.flush()
        self.stable_offset = self.log.log_end_offset

    @rule()
    def compact(self) -> None:
        self._settle()
        before = self.log.size_bytes
        dirty = self.log.plan_compaction(
            stable_offset=self.log.log_end_offset, now_ms=self.clock.now_ms
        )
        if dirty is None:
            return
        finish(self.log, dirty)
        self.written_cleaned_to = self.log.cleaning.cleaned_to
        self._every_clean_key_occurs_once()
        # A delete horizon may make a batch some bytes longer, never a log of any size.
        assert self.log.size_bytes <= before + 10 * len(self.history)

    def _every_clean_key_occurs_once(self) -> None:
        clean = [r for r in records_of(self.log) if r.offset < self.log.cleaning.cleaned_to]
        keys = [record.key for record in clean]
        assert len(keys) == len(set(keys))

    @precondition(lambda self: self.log.segment_count > 1)
    @rule(step=st.integers(0, 25))
    def crash_while_compacting(self, step: int) -> None:
        self._settle()
        try:
            with crash_before(step):
                compact(self.log, self.log.log_end_offset)
        except Crash:
            pass
        self.crash()

    @rule(step=st.integers(0, 25))
    def crash_while_compacting_and_again_while_recovering(self, step: int) -> None:
        self._settle()
        try:
            with crash_before(step):
                compact(self.log, self.log.log_end_offset)
        except Crash:
            self.log.abandon()
            try:
                with crash_before(step % 7):
                    self._open(is_clean=False).abandon()
            except Crash:
                pass
        self.crash()

    @rule()
    def crash(self) -> None:
        end = self.log.log_end_offset
        self.log.abandon()
        self.log = self._open(is_clean=False)
        assert self.log.findings == ()
        assert self.log.log_end_offset == end

    @rule()
    def restart(self) -> None:
        end = self.log.log_end_offset
        self.log.close()
        self.log = self._open(is_clean=True)
        assert self.log.log_end_offset == end

    @invariant()
    def the_newest_value_of_every_key_is_there(self) -> None:
        if hasattr(self, "log"):
            assert newest_of(records_of(self.log)) == newest_of(self.history)

    @invariant()
    def what_is_left_is_what_was_written_in_order(self) -> None:
        if not hasattr(self, "log"):
            return
        written = {record.offset: record for record in self.history}
        left = records_of(self.log)
        assert [record.offset for record in left] == sorted({record.offset for record in left})
        assert all(written[record.offset] == record for record in left)

    @invariant()
    def the_producers_next_sequence_is_known(self) -> None:
        if hasattr(self, "log") and self.sequence:
            assert self._next_sequence() == self.sequence

    @invariant()
    def offsets_can_be_looked_up_behind_gaps(self) -> None:
        if not hasattr(self, "log"):
            return
        end = self.log.log_end_offset
        for record in records_of(self.log)[:5]:
            found = self.log.read(record.offset, max_bytes=1, max_offset=end)
            assert found.base_offset <= record.offset

    def teardown(self) -> None:
        shutil.rmtree(self.directory)


CompactionMachine.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestCompaction = CompactionMachine.TestCase


@given(
    values=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=40),
    waits=st.lists(st.sampled_from([0, DELETE_RETENTION_MS + 1]), min_size=1, max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_a_follower_that_compacts_on_its_own_ends_with_the_same_newest_values(
    values: list[tuple[int, bool]], waits: list[int]
) -> None:
    config = LogConfig(
        segment_bytes=400,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=DELETE_RETENTION_MS,
    )
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
        clock = FakeClock()
        leader, follower = (
            PartitionLog.open(
                f"{directory}/{name}", topic="orders", partition=0, config=config, clock=clock
            )
            for name in ("leader", "follower")
        )
        for key, is_tombstone in values:
            value = None if is_tombstone else b"value"
            batch = build_batch([NewRecord(key=b"%d" % key, value=value, timestamp=NOW_MS)])
            leader.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS)
        for wait_ms in waits:
            leader.flush()
            compact(leader, leader.log_end_offset)
            clock.now_ms += wait_ms
        content = read_all(leader)
        if content:
            follower.append_as_follower(memoryview(content))
        follower.flush()
        compact(follower, follower.log_end_offset)
        assert newest_of(records_of(follower)) == newest_of(records_of(leader))
