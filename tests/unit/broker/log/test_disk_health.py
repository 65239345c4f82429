"""A disk that refuses writes, and one that takes them again."""

import errno
import logging
import os
from pathlib import Path

import pytest

from broker.log.disk_health import PROBE_FILE, RESERVE_BYTES, RESERVE_FILE, DiskHealth
from broker.log.errors import CorruptSegmentError, StorageError, storage_error


def _refused(number: int) -> StorageError:
    try:
        raise OSError(number, os.strerror(number))
    except OSError as error:
        try:
            raise storage_error("Appending failed", error) from error
        except StorageError as story:
            return story


@pytest.fixture
def disk(tmp_path: Path) -> DiskHealth:
    return DiskHealth(str(tmp_path))


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
    assert "No space left on device. Free space" in errors[0]


def test_it_is_well_again_once_probe_and_reserve_can_be_written(
    disk: DiskHealth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.note(_refused(errno.ENOSPC))
    with monkeypatch.context() as full:

        def refuse(fd: int, offset: int, size_bytes: int) -> None:
            raise OSError(errno.ENOSPC, "full")

        full.setattr(os, "posix_fallocate", refuse)
        assert not disk.is_well()
        assert list(tmp_path.iterdir()) == []
    assert disk.is_well()
    assert disk.refusal is None
    assert [path.name for path in tmp_path.iterdir()] == [RESERVE_FILE]


def test_damage_and_missing_files_are_no_refusal(disk: DiskHealth) -> None:
    assert not disk.note(CorruptSegmentError("x.log", 7, "magic 9"))
    assert not disk.note(_refused(errno.ENOENT))
    assert disk.is_well()
