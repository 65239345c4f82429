"""Appending to, rolling and cutting a partition's log."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import fastcrc
import pytest

from broker.log.config import LogConfig
from broker.log.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTxnStateError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    OutOfOrderSequenceError,
    RecordsRejectedError,
    StorageError,
    UnsupportedMagicError,
)
from broker.log.partition_log import PartitionLog
from broker.protocol.records import (
    NewRecord,
    batch_crc_is_valid,
    build_batch,
    iter_batch_headers,
    iter_records,
)
from tests.unit.broker.log.helpers import (
    CONFIG,
    NOW_MS,
    FakeClock,
    append,
    batch,
    offsets,
    open_log,
    read_all,
    sequenced,
    small_segments,
)

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")


def test_a_leader_gives_offsets_and_epoch_and_leaves_the_rest(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first, second = batch(3), batch(2, value=b"other")
    info = append(log, first, epoch=4)
    assert (info.base_offset, info.last_offset, info.log_append_time_ms) == (0, 2, -1)
    info = append(log, memoryview(bytes(second) + bytes(first)), epoch=5)
    assert (info.base_offset, info.last_offset) == (3, 7)
    assert info.size_bytes == len(first) + len(second)
    stored = read_all(log)
    assert stored[16 : len(first)] == bytes(first[16:])
    headers = [header for header, _ in iter_batch_headers(stored)]
    assert [header.partition_leader_epoch for header in headers] == [4, 5, 5]
    assert all(batch_crc_is_valid(memoryview(stored)[p:], h) for h, p in iter_batch_headers(stored))
    assert log.epochs.entries == ((4, 0), (5, 3))
    assert log.log_end_offset == 8


def test_log_append_time_is_stamped_with_a_crc_that_holds(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(CONFIG, message_timestamp_type="LogAppendTime"))
    info = append(log, batch(2, timestamp=5))
    assert info.log_append_time_ms == NOW_MS
    stored = read_all(log)
    ((header, _),) = iter_batch_headers(stored)
    assert header.is_log_append_time
    assert batch_crc_is_valid(stored, header)
    assert [record.timestamp for record in iter_records(stored)] == [NOW_MS, NOW_MS]
    assert log.max_timestamp() is not None


def _with_byte(records: memoryview, position: int, value: int) -> memoryview:
    changed = bytearray(records)
    changed[position] = value
    return memoryview(changed)


def _of_codec(codec: int) -> memoryview:
    """A batch that says so, with a CRC that holds."""
    changed = bytearray(batch())
    changed[22] = codec
    changed[17:21] = fastcrc.crc32.iscsi(bytes(changed[21:])).to_bytes(4, "big")
    return memoryview(changed)


def _resealed(*changes: int) -> memoryview:
    """A batch with bytes of these positions changed (position, byte, position, byte …), and a CRC
    that holds."""
    changed = bytearray(batch())
    for position, byte in zip(changes[::2], changes[1::2], strict=True):
        changed[position] = byte
    changed[17:21] = fastcrc.crc32.iscsi(bytes(changed[21:])).to_bytes(4, "big")
    return memoryview(changed)


def _transactional() -> memoryview:
    """As a producer writes that begins a transaction without asking for one."""
    records = [NewRecord(value=b"x")]
    return memoryview(
        build_batch(
            records, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
        )
    )


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (_with_byte(batch(), 70, 0xEE), CorruptBatchError),
        (_with_byte(batch(), 16, 1), UnsupportedMagicError),
        (_with_byte(batch(), 11, 3), CorruptBatchError),
        (batch()[:-1], InvalidRecordError),
        (memoryview(bytes(batch()) + b"tail"), InvalidRecordError),
        (memoryview(b""), InvalidRecordError),
        (batch(value=bytes(2000)), BatchTooLargeError),
        (batch(timestamp=NOW_MS + 3_600_001), InvalidTimestampError),
        (memoryview(build_batch([NewRecord(value=b"x")], is_control=True)), InvalidRecordError),
        (_transactional(), InvalidTxnStateError),
        (_of_codec(5), InvalidRecordError),
        *((_of_codec(codec), InvalidRecordError) for codec in (1, 2, 3, 4)),
        (_resealed(61, 0x7E), InvalidRecordError),
        (_resealed(61, 0x03), InvalidRecordError),
        (_resealed(61, 0x00), InvalidRecordError),
        (_resealed(60, 2, 26, 1), InvalidRecordError),
        (batch(base_offset=7), InvalidRecordError),
        (batch(producer_id=5, producer_epoch=0, base_sequence=-1), InvalidRecordError),
        (_resealed(22, 8), InvalidTimestampError),
    ],
    ids=[
        "crc",
        "magic",
        "length",
        "cut",
        "tail",
        "nothing",
        "large",
        "future",
        "control",
        "txn",
        "codec",
        "no gzip",
        "no snappy",
        "no lz4",
        "no zstd",
        "record too long",
        "record of negative length",
        "record without bytes",
        "more records than there are",
        "base offset",
        "sequence",
        "log append time",
    ],
)
def test_what_is_not_fit_is_refused_and_leaves_no_trace(
    tmp_path: Path, records: memoryview, error: type[RecordsRejectedError]
) -> None:
    log = open_log(tmp_path, replace(CONFIG, max_message_bytes=1000))
    append(log, batch())
    before = read_all(log)
    with pytest.raises(error):
        append(log, records)
    assert read_all(log) == before
    assert log.log_end_offset == 1
    append(log, batch())


def test_the_second_of_two_batches_unfit_means_none_is_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(CorruptBatchError):
        append(log, memoryview(bytes(batch()) + bytes(_with_byte(batch(), 70, 0xEE))))
    assert log.log_end_offset == 0
    assert log.size_bytes == 0


def test_old_timestamps_and_large_segments_are_refused_where_the_topic_says_so(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path, replace(CONFIG, message_timestamp_before_max_ms=1000))
    with pytest.raises(InvalidTimestampError) as refused:
        append(log, batch(timestamp=NOW_MS - 1001))
    assert [*refused.value.records] == [0]
    log.config = LogConfig(segment_bytes=100)
    with pytest.raises(BatchTooLargeError, match=r"segment\.bytes=100"):
        append(log, batch(value=bytes(100)))


def test_a_compacted_topic_takes_no_record_without_key(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(CONFIG, cleanup_policy=frozenset({"compact"})))
    with pytest.raises(InvalidRecordError) as refused:
        append(log, batch())
    assert [*refused.value.records] == [0]
    append(log, batch(key=b"k"))


def test_a_broker_may_write_control_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    control = build_batch([NewRecord(value=b"x")], is_control=True)
    log.append_as_leader(memoryview(control), leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end_offset == 1


def test_a_duplicate_is_answered_with_its_original_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch())
    append(log, sequenced(0, 3))
    append(log, sequenced(3, 2))
    size = log.size_bytes
    info = append(log, sequenced(0, 3))
    assert info.duplicate
    assert (info.base_offset, info.last_offset, info.size_bytes) == (1, 3, 0)
    assert (log.size_bytes, log.log_end_offset) == (size, 6)
    with pytest.raises(OutOfOrderSequenceError):
        append(log, sequenced(6))
    append(log, sequenced(0, epoch=1))
    with pytest.raises(InvalidProducerEpochError):
        append(log, sequenced(5))


def test_a_follower_takes_offsets_and_epochs_as_they_come(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b")
    append(leader, sequenced(0, 3), epoch=1)
    append(leader, batch(2), epoch=2)
    records = read_all(leader)
    follower.append_as_follower(memoryview(records + records[:50]))
    assert read_all(follower) == records
    assert follower.epochs.entries == leader.epochs.entries == ((1, 0), (2, 3))
    duplicate = follower.append_as_leader(sequenced(0, 3), leader_epoch=3, now_ms=NOW_MS)
    assert duplicate.duplicate
    follower.append_as_follower(memoryview(records[:20]))
    assert follower.log_end_offset == 5, "a part of a batch is left out"
    with pytest.raises(OffsetsOutOfOrderError):
        follower.append_as_follower(memoryview(records))
    follower.append_as_follower(batch(base_offset=100, leader_epoch=2))
    assert follower.log_end_offset == 101


def test_segments_roll_by_size_and_stay_one_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_segments(300))
    expected = b""
    for n in range(10):
        append(log, batch(2, value=b"%050d" % n))
    expected = read_all(log)
    assert log.segment_count == 10
    assert offsets(expected) == [(n * 2, n * 2 + 1) for n in range(10)]
    assert [info.base_offset for info in log.segments()] == [n * 2 for n in range(10)]
    assert [info.is_active for info in log.segments()] == [False] * 9 + [True]
    assert (tmp_path / f"{18:020d}.snapshot").exists()
    again = open_log(tmp_path, small_segments(300))
    assert read_all(again) == expected


def test_segments_roll_by_time_of_their_first_batch(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, replace(CONFIG, segment_ms=1000), clock=clock)
    append(log, batch(timestamp=NOW_MS - 5000))
    append(log, batch(timestamp=NOW_MS - 4000))
    assert log.segment_count == 1
    append(log, batch(timestamp=NOW_MS - 3999))
    assert log.segment_count == 2
    # Without timestamps the segment's age on this broker counts.
    plain = open_log(tmp_path / "plain", replace(CONFIG, segment_ms=1000), clock=clock)
    for late_ms in (0, 1000, 1001):
        records = memoryview(build_batch([NewRecord(value=b"x")]))
        plain.append_as_leader(records, leader_epoch=0, now_ms=NOW_MS + late_ms)
    assert plain.segment_count == 2


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, replace(CONFIG, segment_index_bytes=24, index_interval_bytes=0))
    for n in range(8):
        append(log, batch(timestamp=NOW_MS + n))
    # 24 bytes are 3 offset entries, or 2 time entries of which sealing needs one.
    assert [info.base_offset for info in log.segments()] == [0, 2, 4, 6]


def test_segments_roll_before_a_relative_offset_overflows(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch())
    log.append_as_follower(batch(base_offset=2**31 - 1))
    assert log.segment_count == 1
    log.append_as_follower(batch(base_offset=2**31))
    assert [info.base_offset for info in log.segments()] == [0, 2**31]
    empty = open_log(tmp_path / "empty")
    empty.append_as_follower(batch(base_offset=2**40))
    assert [info.base_offset for info in empty.segments()] == [2**40]


def test_rolling_by_hand_needs_records(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.roll()
    assert log.segment_count == 1
    append(log, batch())
    log.roll()
    log.roll()
    assert log.segment_count == 2


def _filled(directory: Path) -> PartitionLog:
    """Batches [0-1] … [18-19], two segments' worth per five batches, epochs 0 and 1."""
    log = open_log(directory, small_segments(600))
    for n in range(10):
        append(log, batch(2, value=b"%050d" % n), epoch=n // 5)
    return log


@pytest.mark.parametrize("target", range(21))
def test_truncation_to_any_offset_leaves_whole_batches(tmp_path: Path, target: int) -> None:
    log = _filled(tmp_path)
    before = read_all(log)
    assert log.truncate_to(target) is (target < 20)
    end = target // 2 * 2
    assert log.log_end_offset == end
    kept = read_all(log)
    assert before.startswith(kept)
    assert offsets(kept) == [(n, n + 1) for n in range(0, end, 2)]
    assert log.latest_epoch == (None if end == 0 else 0 if end <= 10 else 1)
    info = append(log, batch(1), epoch=7)
    assert info.base_offset == end
    log.close()
    assert read_all(open_log(tmp_path, is_clean=True)) == read_all(open_log(tmp_path))


def test_truncation_forgets_what_producers_wrote_behind_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for n in range(4):
        append(log, sequenced(n))
    log.roll()
    append(log, sequenced(4))
    log.truncate_to(2)
    with pytest.raises(OutOfOrderSequenceError, match="where 2 was due"):
        append(log, sequenced(4))
    append(log, sequenced(2))
    assert append(log, sequenced(1)).duplicate


def test_starting_anew_elsewhere_drops_everything(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (1000, 1000, 0)
    assert log.epochs.entries == ()
    assert append(log, batch()).base_offset == 1000
    assert offsets(read_all(open_log(tmp_path, log_start_offset=1000))) == [(1000, 1000)]
    log.truncate_to(10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)


def test_the_log_start_moves_up_only(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    assert log.increment_log_start_offset(11)
    assert not log.increment_log_start_offset(5)
    assert log.epochs.entries == ((1, 11),)
    with pytest.raises(OffsetOutOfRangeError):
        log.increment_log_start_offset(21)
    deleted = log.delete_old_segments(high_watermark=20, now_ms=NOW_MS)
    assert deleted.reason == "log start offset"
    assert log.segments()[0].base_offset <= 11
    assert log.log_start_offset == 11
    with pytest.raises(OffsetOutOfRangeError):
        log.read(10, max_bytes=100, max_offset=20)


def test_retention_deletes_whole_segments_and_their_files_later(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, small_segments(600), clock=clock)
    for n in range(10):
        append(log, batch(2, value=b"%050d" % n))
    log.config = replace(log.config, retention_ms=1000)
    assert log.delete_old_segments(high_watermark=20, now_ms=NOW_MS + 1001).segments == 0
    deleted = log.delete_old_segments(high_watermark=20, now_ms=NOW_MS + 1002)
    assert deleted.segments == 4
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (20, 20, 1)
    assert log.retired.take_due(NOW_MS + 59_999) == []
    due = set(log.retired.take_due(NOW_MS + 60_000))
    assert due >= {str(path) for path in tmp_path.glob("*.deleted")}
    assert len(due) >= 4
    assert log.retired.take_due(NOW_MS + 60_000) == []
    assert append(log, batch()).base_offset == 20


def test_a_topic_id_is_written_down_and_another_ones_directory_refused(tmp_path: Path) -> None:
    directory = str(tmp_path / "orders-0")
    PartitionLog.open(directory, topic="orders", partition=0, topic_id=TOPIC_ID)
    text = (tmp_path / "orders-0" / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w"
    assert PartitionLog.open(directory, topic="orders", partition=0).topic_id == TOPIC_ID
    with pytest.raises(StorageError, match="another topic's data"):
        PartitionLog.open(directory, topic="orders", partition=0, topic_id=UUID(int=1))


def test_epoch_queries_answer_from_the_log(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    log.epochs.assign(3, 20)
    assert log.end_offset_for_epoch(0) == (0, 10)
    assert log.end_offset_for_epoch(2) == (1, 20)
    assert log.end_offset_for_epoch(3) == (3, 20)
    assert log.epochs.start_offset(1) == 10
    assert log.epochs.epoch_at(9) == 0


def test_flushing_moves_the_recovery_point(tmp_path: Path) -> None:
    log = _filled(tmp_path)
    job = log.durability.flush_job(is_with_active=False)
    assert job is not None
    job.run()
    log.durability.handle_flushed(job)
    assert log.recovery_point == log.segments()[-1].base_offset
    assert log.durability.flush_job(is_with_active=False) is None
    log.flush()
    assert log.recovery_point == 20
    log.truncate_to(4)
    assert log.recovery_point == 4
    log.durability.handle_flushed(job)
    assert log.recovery_point == 4
