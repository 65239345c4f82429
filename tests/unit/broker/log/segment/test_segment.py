"""A segment when the disk refuses: a torn append is cut back, and the segment goes on."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from broker.log.errors import StorageError
from broker.log.partition_log import PartitionLog
from tests.support.faulty_disk import FaultyDisk
from tests.unit.broker.log.helpers import (
    CONFIG,
    NOW_MS,
    append,
    batch,
    open_log,
    read_all,
    sequenced,
    small_segments,
)


class FullDisk:
    """Lets `bytes_left` through, then says ENOSPC, like a disk that fills up."""

    def __init__(self, bytes_left: int) -> None:
        self.bytes_left = bytes_left
        self._writev, self._pwrite = os.writev, os.pwrite

    def writev(self, fd: int, buffers: list[memoryview | bytes]) -> int:
        """Write as much as there is room for."""
        if not self.bytes_left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        content = b"".join(bytes(buffer) for buffer in buffers)[: self.bytes_left]
        self.bytes_left -= len(content)
        return self._writev(fd, [content])

    def pwrite(self, fd: int, content: bytes, position: int) -> int:
        """Write when there is room."""
        if self.bytes_left < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.bytes_left -= len(content)
        return self._pwrite(fd, content, position)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    """The disk that the log writes to, with plenty of room at first."""
    full = FullDisk(1 << 30)
    monkeypatch.setattr(os, "writev", full.writev)
    monkeypatch.setattr(os, "pwrite", full.pwrite)
    return full


@pytest.mark.parametrize("room", [0, 1, 16, 61, 130])
def test_a_torn_append_is_cut_back_and_the_log_goes_on(
    tmp_path: Path, disk: FullDisk, room: int
) -> None:
    log = open_log(tmp_path)
    append(log, sequenced(0))
    before = read_all(log)
    disk.bytes_left = room
    two = memoryview(bytes(sequenced(1)) + bytes(sequenced(2)))
    with pytest.raises(StorageError, match="No space left") as caught:
        append(log, two)
    assert "Free space" in caught.value.next_step
    assert read_all(log) == before
    assert (tmp_path / f"{0:020d}.log").stat().st_size == len(before)
    disk.bytes_left = 1 << 30
    assert append(log, two).base_offset == 1
    again = open_log(tmp_path)
    assert again.findings == ()
    assert read_all(again) == read_all(log)


def test_an_index_without_room_undoes_the_append_too(tmp_path: Path, disk: FullDisk) -> None:
    log = open_log(tmp_path, replace(CONFIG, index_interval_bytes=0))
    append(log, batch())
    before = read_all(log)
    for room in (len(batch()), len(batch()) + 8):
        disk.bytes_left = room
        with pytest.raises(StorageError, match="Appending"):
            append(log, batch(timestamp=1_700_000_000_005))
        assert read_all(log) == before
    disk.bytes_left = 1 << 30
    append(log, batch(timestamp=1_700_000_000_005))
    assert log.segments()[0].index_entries == 1
    log.close()
    assert read_all(open_log(tmp_path, is_clean=True)) == read_all(open_log(tmp_path))


def test_a_segment_that_cannot_roll_stays_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, small_segments(200))
    append(log, batch(value=bytes(80)))

    def refuse(_source: str, _target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(StorageError, match="No space left"):
            append(log, batch(value=bytes(80)))
    assert log.segment_count == 1
    assert append(log, batch(value=bytes(80))).base_offset == 1
    assert log.segment_count == 2


def test_a_full_disk_does_not_keep_retention_from_freeing_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_segments(200))
    for n in range(6):
        append(log, batch(value=bytes(80)), epoch=n // 2)
    log.config = replace(log.config, retention_bytes=200)

    with FaultyDisk(tmp_path, errno.ENOSPC, calls={"write"}) as disk:
        assert log.delete_old_segments(high_watermark=6, now_ms=0).segments == 4
    assert disk.met
    assert log.log_start_offset == 4
    assert log.epochs.entries == ((2, 4),)
    retired = log.retired.take_due(NOW_MS + log.config.file_delete_delay_ms)
    assert len(retired) == 12
    for path in retired:
        Path(path).unlink(missing_ok=True)
    again = open_log(tmp_path, log_start_offset=4)
    assert again.epochs.entries == ((2, 4),)
    assert read_all(again) == read_all(log)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_real_full_device_surfaces_as_a_storage_error(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    path = tmp_path / f"{0:020d}.log"
    log.abandon()
    path.unlink()
    path.symlink_to("/dev/full")
    with pytest.raises(StorageError):
        append(log, batch())


def test_reading_needs_no_right_to_write(tmp_path: Path) -> None:
    log = open_log(tmp_path, small_segments(200))
    for _ in range(3):
        append(log, batch(value=bytes(80)))
    sealed = log.read(0, max_bytes=1, max_offset=3)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(sealed.slices[0].fd, b"x")


def test_a_log_whose_directory_vanished_says_so(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = PartitionLog.open(str(directory), topic="orders", partition=0)
    log.abandon()
    (directory / f"{0:020d}.log").unlink()
    (directory / "leader-epoch-checkpoint").unlink(missing_ok=True)
    directory.rmdir()
    with pytest.raises(StorageError, match="No such file"):
        append(log, batch())
