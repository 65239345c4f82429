"""The metadata log is checked at each start: what it lacks is named, and nothing is cut for it."""

import os
import random
from pathlib import Path

import pytest

from broker.log.errors import DamagedMetadataError
from broker.log.load.metadata_check import MetadataCheck
from broker.log.partition_log import PartitionLog
from broker.protocol.records import NewRecord, build_batch, iter_batch_headers
from tests.support.cases import case
from tests.unit.broker.log.helpers import read_all

BATCHES = 12
EPOCHS = (1, 1, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4)


def open_log(
    directory: Path, *, is_clean: bool = True, durable_end: int = 0, may_cut: bool = False
) -> PartitionLog:
    return PartitionLog.open(
        str(directory),
        topic="__cluster_metadata",
        partition=0,
        is_clean=is_clean,
        recovery_point=durable_end,
        metadata_check=MetadataCheck(may_cut=may_cut),
    )


def stopped(directory: Path) -> bytes:
    """A log of two records a batch in two segments, closed in order; its bytes."""
    log = open_log(directory)
    for number, epoch in enumerate(EPOCHS):
        records = [NewRecord(value=b"%d" % n, timestamp=1) for n in range(2)]
        batch = build_batch(records, base_offset=log.log_end_offset, leader_epoch=epoch)
        log.append_as_follower(memoryview(batch))
        if number == BATCHES // 2 - 1:
            log.roll()
    log.close()
    return read_all(log)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def flip(path: Path, place: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def test_a_sound_log_is_opened_whole(tmp_path: Path) -> None:
    content = stopped(tmp_path)
    for is_clean in (True, False):
        log = open_log(tmp_path, is_clean=is_clean, durable_end=2 * BATCHES)
        assert read_all(log) == content
        log.close()


def test_after_a_clean_stop_each_flipped_bit_is_named_and_nothing_is_changed(
    tmp_path: Path,
) -> None:
    stopped(tmp_path)
    dice = random.Random(61)
    for path in sorted(tmp_path.glob("*.log")):
        content = path.read_bytes()
        starts = [position for _, position in iter_batch_headers(content)]
        first = int(path.stem)
        for place in range(len(content)):
            bit = dice.randrange(8)
            flip(path, place, bit)
            before = files(tmp_path)
            with case(path.name, place, bit), pytest.raises(DamagedMetadataError) as caught:
                open_log(tmp_path, durable_end=2 * BATCHES)
            number = sum(start <= place for start in starts) - 1
            error = caught.value
            assert (error.path, error.position) == (str(path), starts[number])
            assert (error.good_end, error.held) == (first + 2 * number, (4, 2 * BATCHES))
            assert files(tmp_path) == before
            path.write_bytes(content)


@pytest.mark.parametrize("kept", [0, 1, 40, -1])
def test_after_a_clean_stop_a_file_that_is_cut_short_is_damage(tmp_path: Path, kept: int) -> None:
    stopped(tmp_path)
    for path in sorted(tmp_path.glob("*.log")):
        content = path.read_bytes()
        _, second = [position for _, position in iter_batch_headers(content)][:2]
        for size in (kept % len(content), second):
            os.truncate(path, size)
            with case(path.name, size), pytest.raises(DamagedMetadataError) as caught:
                open_log(tmp_path, durable_end=2 * BATCHES)
            assert caught.value.held == (4, 2 * BATCHES)
            path.write_bytes(content)


def test_files_that_are_gone_are_damage(tmp_path: Path) -> None:
    stopped(tmp_path)
    first, second = sorted(tmp_path.glob("*.log"))
    for gone in ([second], [first, second]):
        for path in gone:
            path.unlink(missing_ok=True)
        with pytest.raises(DamagedMetadataError) as caught:
            open_log(tmp_path, durable_end=2 * BATCHES)
        assert caught.value.held[1] == 2 * BATCHES


def test_after_a_crash_only_a_torn_tail_is_cut(tmp_path: Path) -> None:
    stopped(tmp_path)
    path = max(tmp_path.glob("*.log"))
    content = path.read_bytes()
    starts = [position for _, position in iter_batch_headers(content)]
    os.truncate(path, starts[-1] + 30)
    assert open_log(tmp_path, is_clean=False).log_end_offset == 2 * BATCHES - 2
    path.write_bytes(content)
    flip(path, starts[2] + 8, 6)  # its length now reaches beyond the end of the file
    for damaged in (starts[2], starts[3]):
        before = files(tmp_path)
        with pytest.raises(DamagedMetadataError) as caught:
            open_log(tmp_path, is_clean=False)
        assert (caught.value.position, caught.value.held[1]) == (damaged, 2 * BATCHES)
        assert files(tmp_path) == before
        path.write_bytes(content)
        flip(path, starts[3] + 60, 0)


@pytest.mark.parametrize("bit", range(3, 31))
def test_after_a_crash_no_epoch_is_believed_that_nobody_voted_in(tmp_path: Path, bit: int) -> None:
    stopped(tmp_path)
    flip(min(tmp_path.glob("*.log")), 15 - bit // 8, bit % 8)
    with pytest.raises(DamagedMetadataError) as caught:
        PartitionLog.open(
            str(tmp_path),
            topic="__cluster_metadata",
            partition=0,
            metadata_check=MetadataCheck(epoch_max=4),
        )
    assert (caught.value.position, caught.value.good_end) == (0, 0)


def test_what_the_disk_had_is_no_torn_tail(tmp_path: Path) -> None:
    stopped(tmp_path)
    path = max(tmp_path.glob("*.log"))
    flip(path, path.stat().st_size - 1, 0)
    with pytest.raises(DamagedMetadataError):
        open_log(tmp_path, is_clean=False, durable_end=2 * BATCHES)
    log = open_log(tmp_path, is_clean=False, durable_end=2 * BATCHES, may_cut=True)
    assert log.log_end_offset == 2 * BATCHES - 2
