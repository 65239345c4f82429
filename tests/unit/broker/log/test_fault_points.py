"""Scripts of a log's life, run again and again with a fault at every call of the disk.

What was acknowledged is read back afterwards, byte for byte, by the log itself and by one that is
opened from its files after a crash and after a clean end. What is refused is a StorageError.
"""

import errno
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from broker.log.errors import ForceFailedError, StorageError
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.protocol.records import iter_batch_headers, iter_records
from tests.support.cases import case
from tests.support.faulty_disk import ALL, ALWAYS, FaultyDisk
from tests.unit.broker.log.helpers import (
    CONFIG,
    NOW_MS,
    FakeClock,
    batch,
    maintain,
    open_log,
    read_all,
    small_segments,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How the disk fails: which calls, how many in a row, whether they do half of their work."""

    code: int
    times: int = ALWAYS
    is_torn: bool = False
    calls: frozenset[str] = ALL


SMALL: Final = small_segments(400)
FAULTS: Final = {
    "a disk that errs once": Kind(code=errno.EIO, times=1),
    "a disk that errs twice, half done": Kind(code=errno.EIO, times=2, is_torn=True),
    "a full disk": Kind(
        code=errno.ENOSPC,
        is_torn=True,
        calls=frozenset({"open", "mkdir", "write", "pwrite", "writev", "posix_fallocate"}),
    ),
    "no descriptors left": Kind(code=errno.EMFILE, calls=frozenset({"open", "listdir"})),
}


@dataclass(slots=True)
class Ledger:
    """What was acknowledged, by offset: value, sequence of the idempotent producer, leader epoch.

    The producer sends what was refused again with the same sequence.
    """

    records: dict[int, tuple[bytes, int, int]] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    cut_due: int | None = None
    """A truncation that the disk refused: a follower repeats it before it does anything else."""
    new_start: int | None = None
    """Where the log is to start anew, refused likewise."""
    written: int = 0
    epoch: int = 0
    """The newest leader epoch that was written with."""
    story: list[str] = field(default_factory=list)

    def check(self, log: PartitionLog, story: object) -> None:
        content = memoryview(read_all(log))
        found = {
            record.offset: (record.value, header.base_sequence, log.epochs.epoch_at(record.offset))
            for header, position in iter_batch_headers(content)
            for record in iter_records(content[position : position + header.size_bytes])
        }
        start = max(self.start, log.log_start_offset)
        kept = {o: each for o, each in self.records.items() if o >= start}
        assert {o: found.get(o) for o in kept} == kept, story
        assert log.log_end_offset >= self.end, story
        assert log.recovery_point <= log.log_end_offset, story


Step = Callable[[PartitionLog, Ledger], None]


def write(epoch: int) -> Step:
    def step(log: PartitionLog, ledger: Ledger) -> None:
        settle(log, ledger)
        ledger.written += 1
        ledger.epoch = epoch
        value = b"%d" % ledger.written * 20
        sequence = ledger.records[max(ledger.records)][1] + 1 if ledger.records else 0
        sent = batch(value=value, producer_id=7, producer_epoch=0, base_sequence=sequence)
        info = log.append_as_leader(sent, leader_epoch=epoch, now_ms=NOW_MS)
        assert not info.duplicate, ledger.story
        ledger.records[info.base_offset] = value, sequence, epoch
        ledger.end = max(ledger.end, info.last_offset + 1)

    return step


def cut(count: int) -> Step:
    def step(log: PartitionLog, ledger: Ledger) -> None:
        target = max(log.log_end_offset - count, log.log_start_offset)
        # From here on the leader has told that these do not count.
        ledger.end = min(ledger.end, target)
        ledger.records = {o: each for o, each in ledger.records.items() if o < target}
        ledger.cut_due = target if ledger.cut_due is None else min(target, ledger.cut_due)
        settle(log, ledger)

    return step


def settle(log: PartitionLog, ledger: Ledger) -> None:
    if ledger.cut_due is not None:
        log.truncate_to(ledger.cut_due)
        ledger.cut_due = None
    if ledger.new_start is not None:
        log.truncate_fully_and_start_at(ledger.new_start)
        ledger.new_start = None


def start_anew(log: PartitionLog, ledger: Ledger) -> None:
    # The leader has told that its log starts behind ours.
    ledger.new_start = ledger.start = log.log_end_offset + 100
    ledger.end, ledger.cut_due = 0, None
    ledger.records.clear()
    settle(log, ledger)


def roll(log: PartitionLog, ledger: Ledger) -> None:
    log.roll()


def flush(log: PartitionLog, ledger: Ledger) -> None:
    log.flush()


def look(log: PartitionLog, ledger: Ledger) -> None:
    settle(log, ledger)
    ledger.check(log, ledger.story)
    log.offset_for_timestamp(NOW_MS, max_offset=log.log_end_offset)
    log.segments()


def drop(log: PartitionLog, ledger: Ledger) -> None:
    ledger.start = min(log.log_start_offset + 2, log.log_end_offset)
    log.increment_log_start_offset(ledger.start)
    log.delete_old_segments(high_watermark=log.log_end_offset, now_ms=NOW_MS)


SCRIPTS: Final[dict[str, tuple[Step, ...]]] = {
    "appends of two epochs over three segments": (
        *(write(1),) * 4,
        write(2),
        write(2),
        look,
        write(2),
    ),
    "rolled, flushed, looked at": (write(1), roll, write(1), flush, look, write(2)),
    "cut within and across segments": (
        *(write(1),) * 5,
        cut(1),
        write(2),
        cut(4),
        write(3),
        look,
        write(3),
    ),
    "started anew": (*(write(1),) * 5, flush, start_anew, write(2), look, write(2)),
    "deleted from the start": (*(write(1),) * 6, roll, drop, write(2), look, write(2)),
}


def run_script(directory: Path, steps: tuple[Step, ...], kind: Kind, first: int) -> bool:
    """Run with a fault, then look at what is left; whether the script had so many calls."""
    manager = _open(directory)
    log = manager.create_log("orders", 0, UUID(int=7), SMALL)
    ledger = Ledger()
    disk = FaultyDisk(
        directory,
        kind.code,
        first=first,
        times=kind.times,
        calls=kind.calls,
        is_torn=kind.is_torn,
    )
    ledger.story = disk.story
    with disk:
        for step in steps:
            try:
                step(log, ledger)
            except StorageError:
                disk.story.append("refused")
            else:
                disk.story.append(f"done, end {log.log_end_offset}")
            maintain(manager, NOW_MS)
    is_met = disk.count > first
    story = (kind, disk.story)
    assert log.recovery_point <= log.log_end_offset, story
    if manager.disk.failure is None:
        # The disk is well again: it goes on as if nothing had been.
        settle(log, ledger)
        ledger.check(log, story)
        write(ledger.epoch + 1)(log, ledger)
        ledger.check(log, story)
    manager._writer.stop()
    manager._flusher.stop()
    crashed = directory.with_name(directory.name + "-crashed")
    shutil.copytree(directory, crashed)
    manager.shutdown(clean=True)
    for place in (directory, crashed):
        again = _open(place)
        found = again.log("orders", 0)
        assert found is not None, (story, again.failures)
        ledger.check(found, (story, place.name))
        again.shutdown()
        shutil.rmtree(place)
    return is_met


def _open(directory: Path) -> LogManager:
    return LogManager.open(
        str(directory), node_id=1, cluster_id="c", clock=FakeClock(), defaults=CONFIG
    )


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "stride", [pytest.param(7, id="every seventh call"), pytest.param(1, marks=pytest.mark.soak)]
)
def test_nothing_acknowledged_is_lost_wherever_the_disk_fails(
    tmp_path: Path, name: str, fault: str, stride: int
) -> None:
    # Each script and fault begins at another call, so that every seventh covers all kinds.
    first = (list(SCRIPTS).index(name) + list(FAULTS).index(fault)) % stride
    while run_script(tmp_path / str(first), SCRIPTS[name], FAULTS[fault], first):
        first += stride
    assert first > 10


@pytest.mark.parametrize(
    "seeds",
    [
        range(20),
        *(pytest.param(range(n, n + 60), marks=pytest.mark.soak) for n in range(20, 500, 60)),
    ],
    ids=str,
)
def test_nothing_acknowledged_is_lost_in_long_random_lives(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        with case(seed):
            dice = random.Random(seed)
            kind = replace(dice.choice(list(FAULTS.values())), times=dice.choice((1, 2, 5, ALWAYS)))
            run_script(tmp_path / str(seed), _random_steps(dice), kind, dice.randrange(400))


def _random_steps(dice: random.Random) -> tuple[Step, ...]:
    epoch, steps = 1, list[Step]()
    for _ in range(dice.randrange(10, 60)):
        epoch += dice.random() < 0.1
        choices = (write(epoch), cut(dice.randrange(6)), roll, flush, look, drop, start_anew)
        steps += dice.choices(choices, (24, 2, 2, 2, 2, 2, 1))
    return tuple(steps)


def test_an_append_never_lands_behind_bytes_that_could_not_be_cut_off(tmp_path: Path) -> None:
    log, ledger = open_log(tmp_path), Ledger()
    write(1)(log, ledger)
    with (
        FaultyDisk(tmp_path, errno.EIO, calls={"writev", "ftruncate"}, is_torn=True) as disk,
        pytest.raises(StorageError),
    ):
        write(1)(log, ledger)
    assert [each.split()[1] for each in disk.story] == ["writev", "ftruncate"]
    write(1)(log, ledger)
    log.close()
    ledger.check(open_log(tmp_path, is_clean=True), disk.story)


def test_a_log_that_a_full_disk_lets_not_start_anew_is_as_it_was(tmp_path: Path) -> None:
    log, ledger = open_log(tmp_path), Ledger()
    for _ in range(3):
        write(1)(log, ledger)
    log.roll()
    start = log.log_end_offset + 100
    with (
        FaultyDisk(tmp_path, errno.ENOSPC, calls={"open"}, times=1) as disk,
        pytest.raises(StorageError),
    ):
        log.truncate_fully_and_start_at(start)
    assert disk.met
    ledger.check(log, disk.story)
    log.truncate_fully_and_start_at(start)
    assert (log.log_start_offset, log.log_end_offset) == (start, start)


def test_starting_anew_at_the_same_offset_takes_no_room(tmp_path: Path) -> None:
    log, ledger = open_log(tmp_path), Ledger()
    for _ in range(3):
        write(1)(log, ledger)
    log.roll()
    write(1)(log, ledger)
    start = log.log_start_offset
    room = {"write", "pwrite", "writev", "posix_fallocate"}
    with FaultyDisk(tmp_path, errno.ENOSPC, calls=room):
        log.truncate_fully_and_start_at(start)
    assert (log.log_start_offset, log.log_end_offset) == (start, start)
    assert [segment.base_offset for segment in log.segments()] == [start]


def test_a_failed_fsync_is_final_for_the_directory(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    told = list[Exception]()
    manager.disk.on_failure = told.append
    log, ledger = manager.create_log("orders", 0, UUID(int=7), SMALL), Ledger()
    for _ in range(3):
        write(1)(log, ledger)
    log.roll()
    with FaultyDisk(tmp_path / "orders-0", errno.EIO, calls={"fsync"}, times=1) as disk:
        maintain(manager, NOW_MS)
        manager._flusher.stop()
    assert disk.met
    maintain(manager, NOW_MS)
    assert log.recovery_point == 0
    assert [type(error) for error in told] == [ForceFailedError]
    assert manager.disk.failure is told[0]
    assert not manager.disk.is_well()
    manager.shutdown()
    again = _open(tmp_path)
    assert not again.was_clean
    found = again.log("orders", 0)
    assert found is not None
    ledger.check(found, disk.story)
    again.shutdown()


def test_an_epoch_that_a_full_disk_did_not_take_is_known_after_a_clean_start(
    tmp_path: Path,
) -> None:
    manager = _open(tmp_path)
    log, ledger = manager.create_log("orders", 0, UUID(int=7)), Ledger()
    write(1)(log, ledger)
    assert manager._writer.stop()
    with FaultyDisk(tmp_path / "orders-0", errno.ENOSPC, calls={"write"}) as disk:
        write(2)(log, ledger)
        manager._writer.stop()
    assert disk.met
    manager.shutdown()
    again = _open(tmp_path)
    found = again.log("orders", 0)
    assert found is not None
    assert found.epochs.entries == ((1, 0), (2, 1))
    again.shutdown()
