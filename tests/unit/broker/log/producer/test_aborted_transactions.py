"""Aborted transactions of a log: who is told of them, after which crash, cut or deletion."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from broker.log.errors import (
    CoordinatorFencedError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
)
from broker.log.partition_log import PartitionLog
from broker.protocol.control_records import Marker, build_marker
from broker.protocol.records import build_batch
from tests.unit.broker.log.helpers import CONFIG, NOW_MS, append, open_log
from tests.unit.broker.log.transactions import begin, committed, end, pairs

SMALL = replace(CONFIG, segment_bytes=500)


def _values(log: PartitionLog, max_bytes: int = 1 << 20) -> list[bytes | None]:
    return [record.value for record in committed(log, max_bytes=max_bytes)]


def _entries(log: PartitionLog) -> list[tuple[int, ...]]:
    return [tuple(e) for s in log._segments for e in s.transactions.entries()]


def _reopened(log: PartitionLog, directory: Path) -> PartitionLog:
    """As after kill -9, with nothing forced to the disk."""
    log.abandon()
    return open_log(directory, log.config)


def test_records_of_aborted_transactions_are_told_of(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, 1, ("a", "1"))
    begin(log, 2, ("b", "2"), ("c", "3"))
    end(log, 1, is_commit=False)
    begin(log, 1, ("d", "4"))
    end(log, 2, is_commit=True)
    end(log, 1, is_commit=True)
    assert _values(log) == [b"2", b"3", b"4"]
    assert _entries(log) == [(1, 0, 3, 1)]
    read = log.read(1, max_bytes=1, max_offset=7)
    assert log.aborted_within(read) == [(1, 0)]
    assert log.aborted_within(log.read(4, max_bytes=1, max_offset=7)) == []
    assert log.aborted_within(log.read(7, max_bytes=1, max_offset=7)) == []
    log.close()


def test_the_file_is_that_of_kafka(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, 5, ("a", "1"))
    end(log, 5, is_commit=False)
    log.close()
    assert (tmp_path / f"{0:020d}.txnindex").read_bytes() == bytes.fromhex(
        "0000 0000000000000005 0000000000000000 0000000000000001 0000000000000002"
    )


@pytest.mark.parametrize("seed", range(15))
def test_a_crash_a_cut_and_a_deletion_hide_and_show_nothing(tmp_path: Path, seed: int) -> None:
    """An oracle in memory beside a log that crashes, is cut and loses its index files."""
    dice = random.Random(seed)
    log = open_log(tmp_path, SMALL)
    history: list[tuple[int, int, str | bool]] = []  # (offset, producer, value or is_commit)
    for number in range(60):
        producer = dice.randrange(3)
        step = dice.random()
        if step < 0.6:
            history.append((begin(log, producer, ("k", str(number))), producer, str(number)))
        elif step < 0.85 and producer in log.producers.state.open_transactions():
            is_commit = dice.random() < 0.5
            history.append((end(log, producer, is_commit=is_commit), producer, is_commit))
        elif step < 0.92:
            log = _reopened(log, tmp_path)
        elif step < 0.96:
            for path in tmp_path.glob("*.txnindex" if dice.random() < 0.5 else "*.snapshot"):
                path.unlink()
            log = _reopened(log, tmp_path)
        elif history:
            cut = dice.randrange(log.log_start_offset, log.log_end_offset + 1)
            log.truncate_to(cut)
            history = [event for event in history if event[0] < log.log_end_offset]
        expected = _expected(history)
        for max_bytes in (1, 200, 1 << 20):
            assert _values(log, max_bytes) == expected, (seed, number, max_bytes)
    log.close()


def _expected(history: list[tuple[int, int, str | bool]]) -> list[bytes]:
    """Values of committed transactions below the first open one."""
    outcomes: dict[int, bool] = {}
    stable = 1 << 40
    for position in range(len(history) - 1, -1, -1):
        offset, producer, event = history[position]
        if isinstance(event, bool):
            outcomes[producer] = event
        elif producer not in outcomes:
            stable = min(stable, offset)
    found = []
    for position, (offset, producer, event) in enumerate(history):
        if isinstance(event, bool) or offset >= stable:
            continue
        later = (e for _, p, e in history[position:] if p == producer and isinstance(e, bool))
        if next(later):
            found.append(event.encode())
    return found


def test_a_follower_indexes_what_its_leader_aborted(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    begin(leader, 1, ("a", "1"))
    end(leader, 1, is_commit=False)
    begin(leader, 2, ("b", "2"))
    end(leader, 2, is_commit=True)
    begin(leader, 1, ("c", "3"))
    end(leader, 1, is_commit=False)
    content = leader.read_bytes(0, max_bytes=1 << 20, max_offset=leader.log_end_offset)
    follower.append_as_follower(memoryview(content))
    assert _entries(follower) == _entries(leader) == [(1, 0, 1, 2), (1, 4, 5, 6)]
    assert _values(follower) == [b"2"]
    leader.close()
    follower.close()


def test_a_transaction_begins_with_a_verified_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = memoryview(
        build_batch(
            pairs(("a", "1")),
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    )
    state = log.producers.state
    with pytest.raises(InvalidTxnStateError):
        append(log, batch)
    late = state.begin_verification(1)
    end(log, 1, is_commit=False)
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(
            batch, leader_epoch=0, now_ms=NOW_MS, is_from_client=True, verification=late
        )
    assert log.log_end_offset == 1
    begin(log, 1, ("a", "1"))
    assert state.has_open_transaction(1, 0)
    assert not state.has_open_transaction(1, 1)
    log.close()


def test_a_marker_fences_older_epochs_of_producer_and_coordinator(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, 1, ("a", "1"))
    end(log, 1, is_commit=False, epoch=1, coordinator=5)
    with pytest.raises(InvalidProducerEpochError):
        begin(log, 1, ("b", "2"), epoch=0)
    with pytest.raises(CoordinatorFencedError):
        end(log, 1, is_commit=True, epoch=1, coordinator=4)
    begin(log, 1, ("c", "3"), epoch=1)
    log.close()
    log = open_log(tmp_path, is_clean=True)
    with pytest.raises(CoordinatorFencedError):
        log.append_as_leader(
            memoryview(build_marker(1, 1, Marker(True, 4), timestamp_ms=NOW_MS)),
            leader_epoch=0,
            now_ms=NOW_MS,
        )
    log.close()


def test_deleted_records_hold_up_nobody(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    begin(log, 1, ("a", "1"))
    append(log, memoryview(build_batch(pairs(("b", "2")))))
    log.increment_log_start_offset(1)
    assert log.last_stable_offset(2) == 1
    log.close()
