"""Leader epochs: where they start and end."""

from pathlib import Path

import pytest

from broker.log.checkpoint.epoch_cache import EpochCache
from broker.log.errors import StorageError


def _cache(directory: Path, *entries: tuple[int, int]) -> EpochCache:
    cache = EpochCache(str(directory / "leader-epoch-checkpoint"))
    for epoch, start in entries:
        cache.assign(epoch, start)
    return cache


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-1, (-1, -1)),  # undefined
        (1, (1, 5)),  # before the first known epoch: the log starts there
        (2, (2, 10)),
        (3, (2, 10)),  # nothing was written under it: the one below
        (4, (4, 20)),
        (6, (6, 25)),  # the latest ends at the log's end
        (7, (-1, -1)),  # unknown yet
    ],
)
def test_end_offset_answers_like_offset_for_leader_epoch(
    tmp_path: Path, epoch: int, end: tuple[int, int]
) -> None:
    cache = _cache(tmp_path, (2, 5), (4, 10), (6, 20))
    assert cache.end_offset(epoch, 25) == end


def test_an_empty_cache_knows_nothing(tmp_path: Path) -> None:
    cache = _cache(tmp_path)
    assert cache.latest_epoch is None
    assert cache.end_offset(0, 10) == (-1, -1)
    assert cache.epoch_at(3) is None


def test_the_file_is_kafkas_checkpoint_and_comes_back(tmp_path: Path) -> None:
    cache = _cache(tmp_path, (0, 0), (3, 12))
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 12\n"
    again = EpochCache.load(cache.path)
    assert again.entries == ((0, 0), (3, 12))
    assert again.start_offset(3) == 12
    assert again.start_offset(2) is None
    assert again.epoch_at(11) == 0
    assert again.epoch_at(12) == 3


def test_the_same_epoch_again_changes_nothing_and_a_contradiction_wins(tmp_path: Path) -> None:
    cache = _cache(tmp_path, (1, 0), (2, 10))
    cache.assign(2, 15)
    assert cache.entries == ((1, 0), (2, 10))
    cache.assign(3, 10)
    assert cache.entries == ((1, 0), (3, 10))
    cache.assign(2, 20)
    assert cache.entries == ((1, 0), (2, 20))


def test_truncation_from_both_ends(tmp_path: Path) -> None:
    cache = _cache(tmp_path, (1, 0), (2, 10), (3, 20))
    cache.truncate_from_end(20)
    assert list(cache.entries) == [(1, 0), (2, 10)]
    cache.truncate_from_start(5)
    assert list(cache.entries) == [(1, 5), (2, 10)]
    cache.truncate_from_start(12)
    assert list(cache.entries) == [(2, 12)]
    assert EpochCache.load(cache.path).entries == ((2, 12),)
    cache.clear()
    assert EpochCache.load(cache.path).entries == ()


@pytest.mark.parametrize("content", ["", "1\n0\n", "0\n2\n1 1\n", "0\n1\n1\n", "0\n1\na b\n"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(content)
    with pytest.raises(StorageError, match="not a checkpoint"):
        EpochCache.load(str(path))
