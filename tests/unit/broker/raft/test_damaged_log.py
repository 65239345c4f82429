"""A metadata log that the disk has damaged: who goes on, with what, and who does not start."""

from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.log.config import LogConfig
from broker.log.errors import DamagedMetadataError, StorageError
from broker.log.log_manager import LogManager
from broker.raft.damaged_log import FILE_NAME, open_metadata_log
from broker.raft.metadata_log import MetadataLog
from broker.raft.snapshot_id import SnapshotId
from tests.support.phrases import lacking

EPOCH = 2


def open_manager(directory: Path) -> LogManager:
    directory.mkdir(exist_ok=True)
    return LogManager.open(
        str(directory),
        node_id=1,
        cluster_id="c",
        clock=SystemClock(),
        defaults=LogConfig(),
    )


def open_log(logs: LogManager, *, is_alone: bool) -> MetadataLog:
    opened = open_metadata_log(logs, is_alone=is_alone, epoch_max=EPOCH)
    return MetadataLog(opened, SystemClock())


def flush(log: MetadataLog) -> None:
    job = log.begin_flush()
    if job is not None:
        job.run()
        log.finish_flush(job)


async def stopped(directory: Path, *, snapshots: tuple[int, ...] = ()) -> list[Path]:
    """A log of 30 records, stopped in order; its segments."""
    logs = open_manager(directory)
    log = open_log(logs, is_alone=True)
    for number in range(30):
        log.append([b"%d" % number], epoch=EPOCH)
        if number + 1 in snapshots:
            flush(log)
            await log.write_snapshot(SnapshotId(end_offset=number + 1, epoch=EPOCH), [b"x"])
    flush(log)
    logs.shutdown()
    return sorted((directory / "__cluster_metadata-0").glob("*.log"))


def spoil(path: Path, share: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1
    path.write_bytes(content)


async def test_a_voter_alone_does_not_start_and_keeps_all_it_has(tmp_path: Path) -> None:
    (segment,) = await stopped(tmp_path)
    spoil(segment, 0.5)
    before = segment.read_bytes()
    logs = open_manager(tmp_path)
    with pytest.raises(DamagedMetadataError) as caught:
        open_log(logs, is_alone=True)
    logs.shutdown(clean=False)
    told = (str(segment), str(caught.value.position), "backup", "Keep")
    assert not lacking(str(caught.value), *told)
    assert segment.read_bytes() == before
    assert not list(segment.parent.glob("*.cut-*"))


async def test_a_voter_of_several_fetches_again_and_answers_for_what_it_held(
    tmp_path: Path,
) -> None:
    (segment,) = await stopped(tmp_path)
    spoil(segment, 0.5)
    for _ in range(2):  # a crash in between forgets nothing
        logs = open_manager(tmp_path)
        log = open_log(logs, is_alone=False)
        assert 10 < log.end_offset < 20
        assert log.held_end == (EPOCH, 30)
        logs.shutdown(clean=False)
    logs = open_manager(tmp_path)
    log = open_log(logs, is_alone=False)
    while log.end_offset < 30:
        assert log.held_end == (EPOCH, 30)
        log.append([b"again"], epoch=EPOCH)
        flush(log)
    assert not (segment.parent / FILE_NAME).exists()
    log.append([b"new"], epoch=EPOCH)
    assert log.held_end == (EPOCH, 31)
    logs.shutdown()


async def test_a_later_epoch_on_the_disk_ends_it_too(tmp_path: Path) -> None:
    (segment,) = await stopped(tmp_path)
    spoil(segment, 0.5)
    logs = open_manager(tmp_path)
    log = open_log(logs, is_alone=False)
    log.append([b"of the next leader"], epoch=EPOCH + 1)
    assert log.held_end == (EPOCH + 1, log.end_offset)
    assert (segment.parent / FILE_NAME).exists(), "the disk does not have it yet"
    flush(log)
    assert not (segment.parent / FILE_NAME).exists()
    logs.shutdown()


async def test_a_snapshot_stands_for_damaged_segments_before_it(tmp_path: Path) -> None:
    first, *_ = await stopped(tmp_path, snapshots=(10, 20))
    spoil(first, 0.5)
    logs = open_manager(tmp_path)
    log = open_log(logs, is_alone=True)
    assert (log.start_offset, log.end_offset) == (20, 30)
    assert log.start_snapshot_id == SnapshotId(end_offset=20, epoch=EPOCH)
    assert log.held_end == (EPOCH, 30)
    logs.shutdown()
    again = open_manager(tmp_path)
    assert open_log(again, is_alone=True).start_offset == 20
    again.shutdown()


async def test_a_note_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (segment,) = await stopped(tmp_path)
    (segment.parent / FILE_NAME).write_text('{"lastEpoch": "²"}')
    logs = open_manager(tmp_path)
    with pytest.raises(StorageError) as caught:
        open_log(logs, is_alone=False)
    assert not lacking(str(caught.value), FILE_NAME, "vote", "backup")
    logs.shutdown(clean=False)
