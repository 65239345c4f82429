"""Sparse indexes on disk."""

from pathlib import Path

import pytest

from broker.log.segment.index import SparseIndex, offset_index, time_index
from broker.log.segment.open_files import FilePool

ENTRIES = [(10, 100), (20, 250), (30, 400)]


def _index(directory: Path) -> SparseIndex:
    return offset_index(str(directory / "0.index"), FilePool())


def test_entries_are_kafkas_bytes(tmp_path: Path) -> None:
    index = _index(tmp_path)
    index.add(ENTRIES)
    content = (tmp_path / "0.index").read_bytes()
    assert len(content) == 24
    assert content[:8] == b"\x00\x00\x00\x0a\x00\x00\x00\x64"
    times = time_index(str(tmp_path / "0.timeindex"), FilePool())
    times.add([(1, 2)])
    assert (tmp_path / "0.timeindex").read_bytes() == b"\0\0\0\0\0\0\0\x01\0\0\0\x02"


@pytest.mark.parametrize(
    ("field", "target", "slot"),
    [
        (0, 9, -1),
        (0, 10, 0),
        (0, 19, 0),
        (0, 29, 1),
        (0, 30, 2),
        (0, 99, 2),
        (1, 99, -1),
        (1, 250, 1),
    ],
)
def test_floor_finds_the_last_entry_not_above(
    tmp_path: Path, field: int, target: int, slot: int
) -> None:
    index = _index(tmp_path)
    index.add(ENTRIES)
    assert index.floor(field, target) == slot


def test_floor_of_nothing_is_nothing(tmp_path: Path) -> None:
    assert _index(tmp_path).floor(0, 5) == -1


def test_a_sealed_index_is_loaded_again(tmp_path: Path) -> None:
    index = _index(tmp_path)
    index.add(ENTRIES)
    index.seal()
    again = _index(tmp_path)
    assert again.load()
    assert list(again) == ENTRIES
    assert again.last == ENTRIES[-1]


def test_an_index_with_half_an_entry_or_a_tail_of_zeros_is_not_taken(tmp_path: Path) -> None:
    assert not _index(tmp_path).load()
    path = tmp_path / "0.index"
    path.write_bytes(b"1234567")
    assert not _index(tmp_path).load()
    path.write_bytes(bytes(80))
    assert not _index(tmp_path).load()
    path.write_bytes(b"")
    assert _index(tmp_path).load()


def test_keeping_fewer_entries_cuts_the_file(tmp_path: Path) -> None:
    index = _index(tmp_path)
    index.keep(0)
    assert not (tmp_path / "0.index").exists()
    index.add(ENTRIES)
    index.keep(1)
    assert index.last == ENTRIES[0]
    assert (tmp_path / "0.index").stat().st_size == 8
    index.add([(11, 111)])
    assert list(index) == [ENTRIES[0], (11, 111)]
    index.keep(0)
    assert list(index) == []
    index.reset()
    assert (tmp_path / "0.index").read_bytes() == b""


def test_sealing_makes_the_file_even_without_entries(tmp_path: Path) -> None:
    _index(tmp_path).seal()
    assert (tmp_path / "0.index").read_bytes() == b""
    assert _index(tmp_path).load()
