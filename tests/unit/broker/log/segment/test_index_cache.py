"""Indexes in memory follow what happens to their files."""

import os
from array import array
from pathlib import Path

import pytest

from broker.log.segment.index import offset_index
from broker.log.segment.index_cache import IndexCache
from broker.log.segment.open_files import FilePool


def test_the_most_recently_used_are_kept() -> None:
    cache = IndexCache(bytes_max=2 * 16)
    for path in "abc":
        cache.put(path, (array("q", [1]), array("q", [2])))
        cache.get("a")
    assert cache.get("b") is None
    assert cache.get("a") is not None
    cache.forget("a")
    assert cache.get("a") is None


def test_what_is_kept_is_counted_in_bytes_as_it_is_now() -> None:
    cache = IndexCache(bytes_max=1000)
    growing = array("q", [1]), array("q", [2])
    cache.put("active", growing)
    for column in growing:
        column.extend(range(40))
    cache.put("sealed", (array("q", range(40)), array("q", range(40))))
    assert cache.get("active") is None
    cache.put("large", (array("q", range(500)), array("q", range(500))))
    assert cache.get("sealed") is None
    assert cache.get("large") is not None, "or every look-up would read it again"


def test_a_look_up_reads_the_file_once_and_sees_later_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = offset_index(str(tmp_path / "0.index"), FilePool())
    index.add([(n * 10, n * 100) for n in range(50)])
    assert index.floor(0, 123) == 12
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", None)
        assert index.floor(1, 777) == 7
        index.add([(1000, 9000)])
        assert index.floor(0, 999) == 49
        assert index.floor(0, 1000) == 50
    index.keep(10)
    assert index.floor(0, 85) == 8
    assert index.floor(0, 999) == 9
    index.reset()
    assert index.floor(0, 85) == -1
