"""Open files: pooled, bounded, closed with their last reader."""

import os
from pathlib import Path

import pytest

from broker.log.errors import UnreadableFileError
from broker.log.segment.open_files import FilePool, FileSlice, raise_open_files_limit, write_all


def _files(directory: Path, count: int) -> list[str]:
    paths = [directory / f"f{n}" for n in range(count)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return [str(path) for path in paths]


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_the_pool_keeps_the_most_recently_used(tmp_path: Path) -> None:
    first, second, third = _files(tmp_path, 3)
    pool = FilePool(open_files_max=2)
    fd = pool.open(first).fd
    assert pool.open(first).fd == fd
    pool.open(second)
    pool.open(third)
    assert len(pool) == 2
    assert not _is_open(fd)


def test_a_slice_keeps_its_file_open_through_eviction_and_removal(tmp_path: Path) -> None:
    first, second = _files(tmp_path, 2)
    pool = FilePool(open_files_max=1)
    piece = FileSlice(file=pool.open(first), position=1, size_bytes=1)
    pool.open(second)
    os.unlink(first)
    fd = piece.fd
    assert piece.read() == b"0"
    del piece
    assert not _is_open(fd)


def test_a_slice_beyond_the_end_reads_what_is_there(tmp_path: Path) -> None:
    (path,) = _files(tmp_path, 1)
    assert FileSlice(file=FilePool().open(path), position=1, size_bytes=100).read() == b"0"


def test_opening_what_is_not_there_fails(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="No such file"):
        FilePool().open(str(tmp_path / "none"))


def test_write_all_goes_on_after_short_writes_and_more_buffers_than_the_kernel_takes() -> None:
    reader, writer = os.pipe()
    buffers: list[memoryview | bytes] = [bytes([n % 256]) * 7 for n in range(3000)]
    expected = b"".join(bytes(buffer) for buffer in buffers)
    try:
        assert write_all(writer, list(buffers), count_max=10) == len(expected)
        assert os.read(reader, len(expected)) == expected
    finally:
        os.close(reader)
        os.close(writer)


def test_write_all_splits_a_buffer_that_was_half_written(monkeypatch: pytest.MonkeyPatch) -> None:
    out = bytearray()

    def short_writev(_fd: int, buffers: list[memoryview | bytes]) -> int:
        taken = b"".join(bytes(buffer) for buffer in buffers)[:5]
        out.extend(taken)
        return len(taken)

    monkeypatch.setattr(os, "writev", short_writev)
    assert write_all(-1, [b"abc", memoryview(b"defghijkl"), b"mno"]) == 15
    assert bytes(out) == b"abcdefghijklmno"


def test_the_limit_of_open_files_bounds_the_pool() -> None:
    assert 64 <= raise_open_files_limit() <= 8192
