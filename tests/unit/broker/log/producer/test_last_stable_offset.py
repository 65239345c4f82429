"""Up to where a log is stable: open transactions, and ended ones that are not yet replicated."""

from pathlib import Path

import pytest

from broker.log.partition_log import PartitionLog
from broker.protocol.records import NewRecord, build_batch
from tests.unit.broker.log.helpers import NOW_MS, batch, open_log

COMMIT = bytes.fromhex("0000 0001")
"""Key of a commit marker, version 0."""


def take(log: PartitionLog, *batches: memoryview) -> None:
    """As a follower takes batches, each at the log's end."""
    for each in batches:
        log.append_as_follower(memoryview(log.log_end_offset.to_bytes(8) + each[8:]))


def begin(producer_id: int, sequence: int = 0, count: int = 2) -> memoryview:
    """Records of a producer's transaction."""
    return memoryview(
        build_batch(
            [NewRecord(value=b"v", timestamp=NOW_MS)] * count,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
    )


def end(producer_id: int) -> memoryview:
    """The marker that ends it."""
    marker = NewRecord(key=COMMIT, value=bytes(6), timestamp=NOW_MS)
    return memoryview(
        build_batch(
            [marker],
            producer_id=producer_id,
            producer_epoch=0,
            is_control=True,
            is_transactional=True,
        )
    )


def test_without_transactions_it_is_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    take(log, batch(3), batch(2))
    assert [log.last_stable_offset(hw) for hw in (0, 3, 5)] == [0, 3, 5]
    log.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_oldest_open_transaction_holds_it_up(tmp_path: Path, is_clean: bool) -> None:
    log = open_log(tmp_path)
    take(log, batch(1), begin(7), begin(8), begin(7, sequence=2))  # 7 begins at 1, 8 at 3
    assert log.last_stable_offset(7) == 1
    take(log, end(7))
    assert log.last_stable_offset(7) == 1, "its marker, at 7, is not replicated"
    assert log.last_stable_offset(8) == 3
    if is_clean:
        log.close()
    else:
        log.abandon()
    log = open_log(tmp_path, is_clean=is_clean, recovery_point=8 if is_clean else 0)
    assert log.last_stable_offset(8) == 3
    take(log, end(8), begin(7, sequence=4))  # ended at 8, begun again at 9
    assert [log.last_stable_offset(hw) for hw in (8, 9, 11)] == [3, 9, 9]
    take(log, end(7))
    assert [log.last_stable_offset(hw) for hw in (11, 12)] == [9, 12]
    log.close()


def test_a_cut_log_opens_its_transactions_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    take(log, batch(1), begin(7), end(7), batch(1))
    assert log.last_stable_offset(5) == 5
    log.truncate_to(3)
    assert log.last_stable_offset(3) == 1
    log.truncate_to(1)
    assert log.last_stable_offset(1) == 1
    log.close()
