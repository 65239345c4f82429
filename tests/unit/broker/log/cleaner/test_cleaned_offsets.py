"""How far a log is clean is never believed of another log of the same name, however a node ends."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.log.checkpoint.checkpoint_format import CLEANER_OFFSET_FILE, read_offsets
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.protocol.records import NewRecord, build_batch
from tests.support.settle import wait_until
from tests.unit.broker.log.helpers import NOW_MS, FakeClock

KEY = ("orders", 0)
OTHER = ("orders", 1)
CLEAN_TO = 10


def _open(directory: Path) -> LogManager:
    defaults = LogConfig(segment_bytes=200, cleanup_policy=frozenset({"compact"}))
    return LogManager.open(
        str(directory), node_id=1, cluster_id="c", clock=FakeClock(), defaults=defaults
    )


def _fill(log: PartitionLog, records: int) -> PartitionLog:
    for _ in range(records):
        batch = build_batch([NewRecord(key=b"k", value=bytes(50), timestamp=NOW_MS)])
        log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS)
    return log


def _log(manager: LogManager, partition: int = 0) -> PartitionLog:
    return manager.create_log("orders", partition, UUID(int=5))


def _written(directory: Path) -> dict[tuple[str, int], int]:
    return read_offsets(str(directory / CLEANER_OFFSET_FILE))


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    """Two logs, both clean up to the same offset, and written down so."""
    manager = _open(tmp_path)
    for partition in range(2):
        _fill(_log(manager, partition), 20).cleaning.cleaned_to = CLEAN_TO
    manager.write_checkpoints({KEY: 20, OTHER: 20})
    wait_until(lambda: _written(tmp_path) == {KEY: CLEAN_TO, OTHER: CLEAN_TO}, "it is written")
    return manager


def _cleaned_after_a_crash(manager: LogManager, directory: Path) -> list[int]:
    manager.shutdown(clean=False)
    again = _open(directory)
    found = [_log(again, partition).cleaning.cleaned_to for partition in range(2)]
    again.shutdown()
    return found


def test_a_replica_that_left_and_came_back_is_not_clean(
    manager: LogManager, tmp_path: Path
) -> None:
    manager.delete_log(*KEY)
    assert _fill(_log(manager), 20).cleaning.cleaned_to == 0
    assert _cleaned_after_a_crash(manager, tmp_path) == [0, CLEAN_TO]


@pytest.mark.parametrize("offset", [5, 0])
def test_a_log_that_was_cut_is_not_cleaner_than_it_is_long(
    manager: LogManager, tmp_path: Path, offset: int
) -> None:
    log = _log(manager)
    log.truncate_to(offset)
    assert log.cleaning.cleaned_to <= offset
    _fill(log, 20)
    assert _cleaned_after_a_crash(manager, tmp_path) == [0, CLEAN_TO]


def test_a_log_that_starts_over_is_not_clean(manager: LogManager, tmp_path: Path) -> None:
    _log(manager).truncate_fully_and_start_at(0)
    _fill(_log(manager), 20)
    assert _cleaned_after_a_crash(manager, tmp_path) == [0, CLEAN_TO]


@pytest.mark.parametrize("records", [0, 1])
def test_what_a_short_log_cannot_be_is_forgotten_at_start(
    manager: LogManager, tmp_path: Path, records: int
) -> None:
    """A node that ended just before the file was written anew."""
    manager.delete_log(*KEY)
    if records:
        _fill(_log(manager), records)
    manager.shutdown(clean=False)
    (tmp_path / CLEANER_OFFSET_FILE).write_text(f"0\n1\norders 0 {CLEAN_TO}\n")
    again = _open(tmp_path)
    wait_until(lambda: KEY not in _written(tmp_path), "the file says nothing of it")
    assert _fill(_log(again), 20).cleaning.cleaned_to == 0
    assert _cleaned_after_a_crash(again, tmp_path) == [0, 0]
