"""Reading by offset and by time."""

from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from broker.log.errors import CorruptSegmentError, OffsetOutOfRangeError
from broker.log.partition_log import PartitionLog
from tests.support.cases import case
from tests.unit.broker.log.helpers import (
    CONFIG,
    NOW_MS,
    append,
    batch,
    offsets,
    open_log,
    small_segments,
)

BATCHES = 40
BATCH_BYTES = len(batch(2, value=bytes(50)))


def _filled(directory: Path, segment_bytes: int = 10 * BATCH_BYTES) -> PartitionLog:
    """Batches of two, [0-1] … [78-79], ten to a segment, ten ms apart."""
    log = open_log(directory, small_segments(segment_bytes))
    for n in range(BATCHES):
        append(log, batch(2, value=bytes(50), timestamp=NOW_MS - 10_000 + n * 10))
    return log


@pytest.fixture(params=["appending", "reopened"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> PartitionLog:
    """The same log with its newest batches in memory, and with nothing in memory."""
    filled = _filled(tmp_path)
    if request.param == "appending":
        return filled
    filled.close()
    return open_log(tmp_path, small_segments(10 * BATCH_BYTES), is_clean=True)


def test_the_batch_that_holds_the_offset_comes_first(log: PartitionLog) -> None:
    for offset in range(80):
        with case(offset):
            found = log.read(offset, max_bytes=1, max_offset=80)
            base = offset // 2 * 2
            assert found.base_offset == base
            assert offsets(found.read()) == [(base, base + 1)]
            assert log.read(offset, max_bytes=1, max_offset=80, min_one_batch=False).slices == ()


def test_whole_batches_up_to_the_limit(log: PartitionLog) -> None:
    for offset, max_batches in product((0, 5, 18, 60, 77), (1, 2, 3, 7, 9, 10, 11)):
        with case(offset, max_batches):
            found = log.read(offset, max_bytes=max_batches * BATCH_BYTES + 5, max_offset=80)
            base = offset // 2 * 2
            whole_segment = (base // 20 + 1) * 20
            last = min(base + 2 * max_batches, whole_segment)
            got = offsets(found.read())
            assert got == [(n, n + 1) for n in range(base, got[-1][0] + 2, 2)]
            # Old segments stop at an indexed boundary, which may be a batch or two earlier.
            assert last - 4 <= got[-1][1] + 1 <= last
            assert found.size_bytes == len(got) * BATCH_BYTES


def test_only_whole_batches_below_max_offset(log: PartitionLog) -> None:
    for max_offset in (60, 61, 62, 65, 79, 80):
        with case(max_offset):
            found = log.read(60, max_bytes=1 << 20, max_offset=max_offset)
            assert offsets(found.read()) == [(n, n + 1) for n in range(60, max_offset // 2 * 2, 2)]
    assert log.read(60, max_bytes=1, max_offset=61).slices == ()


def test_at_the_end_there_is_nothing_and_beyond_it_an_error(log: PartitionLog) -> None:
    assert log.read(80, max_bytes=100, max_offset=80).size_bytes == 0
    assert log.read_bytes(79, max_bytes=100, max_offset=70) == b""
    for offset in (-1, 81):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, max_bytes=100, max_offset=80)


def test_a_gap_is_read_over(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(2, base_offset=0))
    log.append_as_follower(batch(2, base_offset=10))
    log.roll()
    log.append_as_follower(batch(2, base_offset=20))
    assert log.read(5, max_bytes=1, max_offset=22).base_offset == 10
    assert log.read(12, max_bytes=1, max_offset=22).base_offset == 20


def test_every_timestamp_finds_its_record(log: PartitionLog) -> None:
    for offset in range(80):
        with case(offset):
            timestamp = NOW_MS - 10_000 + offset // 2 * 10 + offset % 2
            found = log.offset_for_timestamp(timestamp, max_offset=80)
            assert found is not None
            assert (found.offset, found.timestamp_ms, found.leader_epoch) == (offset, timestamp, 0)
            assert log.offset_for_timestamp(timestamp, max_offset=offset) is None


def test_timestamps_before_and_after_all_records(log: PartitionLog) -> None:
    first = log.offset_for_timestamp(0, max_offset=80)
    assert first is not None
    assert first.offset == 0
    assert log.offset_for_timestamp(NOW_MS, max_offset=80) is None
    log.increment_log_start_offset(31)
    first = log.offset_for_timestamp(0, max_offset=80)
    assert first is not None
    assert first.offset == 31
    newest = log.max_timestamp()
    assert newest is not None
    assert (newest.offset, newest.timestamp_ms) == (79, NOW_MS - 10_000 + 391)


def test_the_largest_timestamp_need_not_be_the_last(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(CONFIG, index_interval_bytes=0))
    assert log.max_timestamp() is None
    for timestamp in (5, 9, 3, 9, 4):
        append(log, batch(timestamp=NOW_MS + timestamp))
    newest = log.max_timestamp()
    assert newest is not None
    assert newest.offset == 1
    found = log.offset_for_timestamp(NOW_MS + 6, max_offset=5)
    assert found is not None
    assert found.offset == 1
    log.truncate_to(1)
    newest = log.max_timestamp()
    assert newest is not None
    assert newest.timestamp_ms == NOW_MS + 5


def test_damage_on_the_way_is_named_with_file_and_position(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.close()
    path = tmp_path / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[16] = 9
    path.write_bytes(content)
    again = open_log(tmp_path, is_clean=True)
    with pytest.raises(CorruptSegmentError, match="at position 0") as caught:
        again.read(0, max_bytes=1, max_offset=80)
    assert caught.value.path == str(path)
    assert "restart this broker" in caught.value.next_step
    assert again.read(20, max_bytes=1, max_offset=80).base_offset == 20


@pytest.mark.parametrize("count", [2, 3, 8, 100])
def test_the_log_ended_where_when(log: PartitionLog, count: int) -> None:
    points = log.end_times(count)
    assert len(points) == min(count, len(points))
    assert points[0][0] == 0
    assert points[-1] == (80, NOW_MS - 10_000 + 39 * 10 + 1)
    # Batch n ends at offset 2n + 2; its second record is a millisecond younger than its first.
    assert all(ms == NOW_MS - 10_000 + (end // 2 - 1) * 10 + 1 for end, ms in points[1:])
    steps = [after[0] - before[0] for before, after in pairwise(points)]
    assert min(steps) > 0
    assert max(steps) <= 80 // (count - 1) + 2 * 10


def test_a_log_without_timestamps_tells_no_times(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    assert log.end_times(8) == ()
    append(log, batch(1, timestamp=-1))
    assert log.end_times(8) == ()
