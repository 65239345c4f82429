"""A disk that refuses writes, and one that takes them again."""

import errno
import logging
import os
from pathlib import Path

import pytest

from broker.log.disk.disk_health import (
    PROBE_FILE,
    RESERVE_BYTES,
    RESERVE_FILE,
    STEADY_MS,
    STEADY_MS_MAX,
    DiskHealth,
)
from broker.log.errors import CorruptSegmentError, StorageError, storage_error
from tests.support.phrases import lacking
from tests.unit.broker.log.helpers import FakeClock


def _refused(number: int) -> StorageError:
    try:
        raise OSError(number, os.strerror(number))
    except OSError as error:
        try:
            raise storage_error("Appending failed", error) from error
        except StorageError as story:
            return story


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def disk(tmp_path: Path, clock: FakeClock) -> DiskHealth:
    return DiskHealth(str(tmp_path), clock)


def _is_well_after(disk: DiskHealth, clock: FakeClock, ms: int) -> bool:
    """Asked now and then again, as heartbeats do."""
    disk.is_well()
    clock.now_ms += ms
    return disk.is_well()


def test_a_healthy_disk_holds_a_reserve(disk: DiskHealth, tmp_path: Path) -> None:
    assert disk.is_well()
    reserve = (tmp_path / RESERVE_FILE).stat()
    assert reserve.st_size == RESERVE_BYTES
    assert reserve.st_blocks * 512 >= RESERVE_BYTES
    assert not (tmp_path / PROBE_FILE).exists()


def test_a_full_disk_gets_the_reserve_back_and_is_told_once(
    disk: DiskHealth, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    error = _refused(errno.ENOSPC)
    assert disk.note(error)
    assert disk.note(_refused(errno.ENOSPC))
    assert disk.refusal is error
    assert not (tmp_path / RESERVE_FILE).exists()
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert str(tmp_path) in errors[0]
    assert not lacking(errors[0], "No space left", "Free space")


def test_it_is_well_again_once_there_has_been_room_for_some_seconds(
    disk: DiskHealth, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.note(_refused(errno.ENOSPC))
    with monkeypatch.context() as full:

        def refuse(fd: int, offset: int, size_bytes: int) -> None:
            raise OSError(errno.ENOSPC, "full")

        full.setattr(os, "posix_fallocate", refuse)
        assert not _is_well_after(disk, clock, 2 * STEADY_MS)
        assert list(tmp_path.iterdir()) == []
    assert not _is_well_after(disk, clock, STEADY_MS - 1)
    clock.now_ms += 1
    assert disk.is_well()
    assert disk.refusal is None
    assert [path.name for path in tmp_path.iterdir()] == [RESERVE_FILE]


def test_room_that_comes_and_goes_is_no_room(
    disk: DiskHealth, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.note(_refused(errno.ENOSPC))
    assert not _is_well_after(disk, clock, STEADY_MS - 1)
    with monkeypatch.context() as full:
        nearly = os.statvfs_result((4096, 4096, 1 << 20, 100, 100, 9, 9, 9, 0, 255))
        full.setattr(os, "statvfs", lambda _: nearly)
        assert not _is_well_after(disk, clock, 1)
    assert not _is_well_after(disk, clock, STEADY_MS - 1)
    assert _is_well_after(disk, clock, 1)


def test_a_relapse_waits_twice_as_long_and_a_late_one_does_not(
    disk: DiskHealth, clock: FakeClock
) -> None:
    waits = [STEADY_MS << times for times in range(5)]
    assert waits[-1] == STEADY_MS_MAX
    for wait_ms in (*waits, STEADY_MS_MAX):
        disk.note(_refused(errno.ENOSPC))
        assert not _is_well_after(disk, clock, wait_ms - 1)
        assert _is_well_after(disk, clock, 1)
    clock.now_ms += STEADY_MS_MAX
    disk.note(_refused(errno.ENOSPC))
    assert _is_well_after(disk, clock, STEADY_MS)


def test_damage_and_missing_files_are_no_refusal(disk: DiskHealth) -> None:
    assert not disk.note(CorruptSegmentError("x.log", 7, "magic 9"))
    assert not disk.note(_refused(errno.ENOENT))
    assert disk.is_well()
