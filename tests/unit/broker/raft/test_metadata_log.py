from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.log.errors import StorageError
from broker.log.names import METADATA_TOPIC_ID
from broker.log.partition_log import PartitionLog
from broker.metadata.topic_names import METADATA_TOPIC
from broker.protocol.records import iter_batch_headers, iter_records
from broker.raft.messages import EpochEnd
from broker.raft.metadata_log import MetadataLog
from broker.raft.node import read_start
from broker.raft.snapshot_id import SnapshotId


def open_log(directory: Path) -> MetadataLog:
    partition = PartitionLog.open(
        str(directory), topic=METADATA_TOPIC, partition=0, topic_id=METADATA_TOPIC_ID
    )
    return MetadataLog(partition, SystemClock())


def force(log: MetadataLog) -> None:
    """Everything to the disk, as the thread does it."""
    job = log.begin_flush()
    if job is not None:
        job.run()
        assert log.finish_flush(job) == log.end_offset


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    return open_log(tmp_path / "a")


def test_appended_batches_keep_offset_and_epoch(log: MetadataLog) -> None:
    assert (log.start_offset, log.end_offset, log.last_epoch) == (0, 0, 0)
    assert log.append_leader_change(epoch=3, leader_id=1, voters=(1, 2)) == 0
    assert log.append([b"a", b"b"], epoch=3) == 2
    assert (log.end_offset, log.last_epoch) == (3, 3)
    headers = [header for header, _ in iter_batch_headers(log.read(0, bytes_max=10_000))]
    assert [(h.base_offset, h.last_offset, h.partition_leader_epoch) for h in headers] == [
        (0, 0, 3),
        (1, 2, 3),
    ]
    assert headers[0].is_control


def test_leader_change_is_kafkas_control_record(log: MetadataLog) -> None:
    log.append_leader_change(epoch=1, leader_id=101, voters=(101, 102))
    (record,) = iter_records(log.read(0, bytes_max=10_000))
    assert record.key == b"\x00\x00\x00\x02"
    assert record.value == bytes.fromhex("000000000065030000006500000000660002000000650000")


def test_follower_takes_what_the_leader_reads(log: MetadataLog, tmp_path: Path) -> None:
    log.append_leader_change(epoch=1, leader_id=1, voters=(1,))
    log.append([b"a"], epoch=1)
    follower = open_log(tmp_path / "b")
    follower.append_fetched(log.read(0, bytes_max=10_000))
    assert follower.read(0, bytes_max=10_000) == log.read(0, bytes_max=10_000)


def test_committed_batches_are_read_up_to_the_high_watermark(log: MetadataLog) -> None:
    log.append_leader_change(epoch=1, leader_id=1, voters=(1,))
    log.append([b"a", b"b"], epoch=1)
    log.append([b"c"], epoch=1)
    batches = list(log.batches(0, max_offset=3, bytes_max=10_000))
    assert [(b.values, b.base_offset, b.last_offset, b.epoch) for b in batches] == [
        ((), 0, 0, 1),
        ((b"a", b"b"), 1, 2, 1),
    ]
    assert list(log.batches(4, max_offset=4, bytes_max=10_000)) == []


def test_a_flush_counts_what_was_there_when_it_began(log: MetadataLog) -> None:
    assert log.begin_flush() is None
    log.append([b"a"], epoch=1)
    first = log.begin_flush()
    log.append([b"b"], epoch=1)
    assert first is not None
    first.run()
    assert log.finish_flush(first) == 1
    second = log.begin_flush()
    assert second is not None
    assert (len(second.paths), second.is_with_directory) == (1, False)
    log._log.roll()
    log.append([b"c"], epoch=1)
    third = log.begin_flush()
    assert third is not None
    assert sum(path.endswith(".log") for path in third.paths) == 2
    assert third.is_with_directory
    second.run()
    assert log.finish_flush(second) == 2
    third.run()
    log.truncate_to(1)
    log.append([b"d", b"e"], epoch=2)
    assert log.finish_flush(third) == 1, "what it forced is not what is there now"
    force(log)
    assert log.begin_flush() is None


def test_ends_of_epochs_and_truncation(log: MetadataLog) -> None:
    log.append([b"a", b"b"], epoch=1)
    log.append([b"c"], epoch=4)
    assert log.end_offset_for_epoch(1) == EpochEnd(epoch=1, end_offset=2)
    assert log.end_offset_for_epoch(3) == EpochEnd(epoch=1, end_offset=2)
    assert log.end_offset_for_epoch(4) == EpochEnd(epoch=4, end_offset=3)
    assert log.end_offset_for_epoch(0) == EpochEnd(epoch=0, end_offset=0)
    log.truncate_to(2)
    assert (log.end_offset, log.last_epoch) == (2, 1)
    assert open_log_end(log) == 2


def open_log_end(log: MetadataLog) -> int:
    """What a restart finds after a flush."""
    force(log)
    directory = Path(log._log.directory)
    return open_log(directory).end_offset


def id_(end_offset: int, epoch: int = 1) -> SnapshotId:
    return SnapshotId(end_offset=end_offset, epoch=epoch)


async def filled(log: MetadataLog) -> None:
    """Three snapshots, ten records each; the last record stands behind them."""
    for end_offset in (10, 20, 30):
        log.append([b"%d" % n for n in range(10)], epoch=1)
        force(log)
        await log.write_snapshot(id_(end_offset), [b"state at %d" % end_offset])
    log.append([b"last"], epoch=1)
    force(log)


async def test_the_log_before_the_older_snapshot_is_deleted(
    log: MetadataLog, tmp_path: Path
) -> None:
    await filled(log)
    assert (log.start_offset, log.end_offset, log.last_epoch) == (20, 31, 1)
    assert (log.start_snapshot_id, log.latest_snapshot_id) == (id_(20), id_(30))
    assert [path.name for path in sorted((tmp_path / "a").glob("*.log"))] == [
        f"{20:020d}.log",
        f"{30:020d}.log",
    ]
    # What the log manager knows of the start may be old: the snapshots tell it.
    again = open_log(tmp_path / "a")
    assert (again.start_offset, again.end_offset, again.last_epoch) == (20, 31, 1)


async def test_a_fetched_snapshot_takes_the_logs_place(log: MetadataLog, tmp_path: Path) -> None:
    await filled(log)
    follower = open_log(tmp_path / "b")
    follower.append([b"old"], epoch=1)
    position = 0
    while (part := log.read_snapshot(id_(30), position, bytes_max=50)) is not None:
        follower.write_snapshot_part(id_(30), position, part.data)
        position += len(part.data)
        if position == part.size_bytes:
            break
    follower.snapshots.adopt(id_(30))
    assert follower.install_snapshot(id_(30))
    assert (follower.start_offset, follower.end_offset, follower.last_epoch) == (30, 30, 1)
    snapshot = follower.read_latest_snapshot()
    assert snapshot is not None
    assert snapshot.values == (b"state at 30",)
    follower.append_fetched(log.read(30, bytes_max=1000))
    assert open_log(tmp_path / "b").end_offset == 31
    assert log.read_snapshot(id_(10), 0, bytes_max=50) is None


@pytest.mark.parametrize(("epoch", "records_count"), [(1, 1), (0, 40), (2, 40)])
async def test_a_crash_between_snapshot_and_log_is_mended_at_the_next_start(
    log: MetadataLog, tmp_path: Path, epoch: int, records_count: int
) -> None:
    """Also where the log has more records than the snapshot, which nobody committed."""
    await filled(log)
    follower = open_log(tmp_path / "b")
    follower.append([b"old"] * records_count, epoch=epoch)
    force(follower)
    name = id_(30).file_name
    (tmp_path / "b" / name).write_bytes((tmp_path / "a" / name).read_bytes())
    again = open_log(tmp_path / "b")
    assert (again.start_offset, again.end_offset, again.last_epoch) == (30, 30, 1)


async def test_a_snapshot_that_is_written_meanwhile_does_not_outlive_a_fetched_one(
    log: MetadataLog, tmp_path: Path
) -> None:
    await filled(log)
    follower = open_log(tmp_path / "b")
    follower.append([b"old"] * 5, epoch=1)
    force(follower)
    part = log.read_snapshot(id_(30), 0, bytes_max=10_000)
    assert part is not None
    follower.write_snapshot_part(id_(30), 0, part.data)

    def values() -> Iterator[bytes]:
        yield b"state at 5"
        follower.snapshots.adopt(id_(30))
        assert follower.install_snapshot(id_(30))

    await follower.write_snapshot(id_(5), values())
    assert (follower.start_snapshot_id, follower.snapshots.ids()) == (id_(30), [id_(30)])


async def test_a_damaged_snapshot_is_not_installed(log: MetadataLog, tmp_path: Path) -> None:
    await filled(log)
    follower = open_log(tmp_path / "b")
    follower.append([b"kept"], epoch=1)
    part = log.read_snapshot(id_(30), 0, bytes_max=10_000)
    assert part is not None
    follower.write_snapshot_part(id_(30), 0, part.data[:-1])
    follower.snapshots.adopt(id_(30))
    assert not follower.install_snapshot(id_(30))
    assert (follower.start_offset, follower.end_offset) == (0, 1)
    assert not list((tmp_path / "b").glob("*.part"))


async def test_a_start_without_the_snapshot_that_it_needs_is_refused(
    log: MetadataLog, tmp_path: Path
) -> None:
    await filled(log)
    newest = max((tmp_path / "a").glob("*.checkpoint"))
    of_another_node = newest.read_bytes()
    for path in (tmp_path / "a").glob("*.checkpoint"):
        path.write_bytes(b"gone")
    with pytest.raises(StorageError, match=r"offset 20 .*Keep the directory"):
        read_start(open_log(tmp_path / "a"))
    newest.write_bytes(of_another_node)
    start = read_start(open_log(tmp_path / "a"))
    assert start is not None
    assert start.id == id_(30)
