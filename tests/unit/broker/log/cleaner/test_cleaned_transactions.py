"""Compaction through transactions: aborted records go, markers stay as long as they are needed."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from broker.log.cleaner.cleaning_run import Compaction
from broker.log.partition_log import PartitionLog
from broker.log.segment.segment_swap import commit_cleaned
from broker.protocol.records import iter_batch_headers, iter_records
from tests.unit.broker.log.helpers import CONFIG, NOW_MS, open_log, read_all
from tests.unit.broker.log.transactions import begin, committed, end

COMPACT = replace(
    CONFIG,
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=400,
    delete_retention_ms=1000,
    min_cleanable_dirty_ratio=0.0,
)


def _planned(log: PartitionLog, now_ms: int) -> Compaction | None:
    log.cleaning.cleaned_to = 0
    return log.plan_compaction(stable_offset=log.log_end_offset, now_ms=now_ms)


def _compact(log: PartitionLog, now_ms: int = NOW_MS) -> None:
    run = _planned(log, now_ms)
    while run is not None and (group := run.next_group(lambda: None)) is not None:
        assert log.cleaning.swap_in(group, run.settings)


def _newest(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in committed(log, max_bytes=200)}


def _markers(log: PartitionLog) -> int:
    return sum(header.is_control for header, _ in iter_batch_headers(read_all(log)))


def _keys(log: PartitionLog) -> list[bytes | None]:
    content = memoryview(read_all(log))
    return [
        record.key
        for header, position in iter_batch_headers(content)
        if not header.is_control
        for record in iter_records(content[position : position + header.size_bytes])
    ]


def _fill(log: PartitionLog, dice: random.Random, count: int) -> None:
    for number in range(count):
        producer = dice.randrange(4)
        if producer in log.producers.state.open_transactions() and dice.random() < 0.5:
            end(log, producer, is_commit=dice.random() < 0.5)
        else:
            key = f"k{dice.randrange(4)}"
            begin(log, producer, (key, None if dice.random() < 0.1 else str(number)))


@pytest.mark.parametrize("seed", range(15))
def test_what_consumers_see_of_each_key_stays(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    log = open_log(tmp_path, COMPACT)
    now_ms = NOW_MS
    for _ in range(4):
        _fill(log, dice, 60)
        before = _newest(log)
        _compact(log, now_ms)
        after = _newest(log)
        assert {k: v for k, v in after.items() if v is not None} == {
            k: v for k, v in before.items() if v is not None
        }
        assert all(before[key] is None for key in before.keys() - after.keys())
        if dice.random() < 0.5:
            log.abandon()
            log = open_log(tmp_path, COMPACT)
            assert _newest(log) == after
        now_ms += 600
    log.close()


def test_aborted_records_go_at_once_and_their_marker_later(tmp_path: Path) -> None:
    log = open_log(tmp_path, COMPACT)
    begin(log, 1, ("gone", "1"))
    end(log, 1, is_commit=False)
    begin(log, 1, ("kept", "2"))
    end(log, 1, is_commit=True)
    log.roll()
    begin(log, 2, ("active", "3"))
    _compact(log)
    assert _keys(log) == [b"kept", b"active"]
    assert _markers(log) == 2
    # As in Kafka, the next run is the first that meets no batch of it.
    _compact(log, NOW_MS + 500)
    _compact(log, NOW_MS + 1_400)
    assert _markers(log) == 2
    _compact(log, NOW_MS + 1_500)
    assert _markers(log) == 1, "the one of the records that are kept"
    assert _newest(log) == {b"kept": b"2"}
    log.close()


@pytest.mark.parametrize("is_index_renamed", [False, True])
def test_a_crash_amid_a_swap_leaves_the_index_that_belongs_to_the_segment(
    tmp_path: Path, is_index_renamed: bool
) -> None:
    log = open_log(tmp_path, COMPACT)
    begin(log, 1, ("gone", "1"))
    end(log, 1, is_commit=False)
    log.roll()
    begin(log, 1, ("kept", "2"))
    end(log, 1, is_commit=True)
    log.roll()
    begin(log, 2, ("active", "3"))
    _compact(log)
    run = _planned(log, NOW_MS)
    assert run is not None
    group = run.next_group(lambda: None)
    assert group is not None
    commit_cleaned(log.directory, 0)
    index = tmp_path / f"{0:020d}.txnindex"
    assert (index.stat().st_size, Path(f"{index}.swap").stat().st_size) == (34, 0)
    if is_index_renamed:
        Path(f"{index}.swap").rename(index)
    log.abandon()
    log = open_log(tmp_path, COMPACT, is_clean=True)
    assert index.stat().st_size == 0
    assert _newest(log) == {b"kept": b"2"}
    log.close()
