"""After a crash: what is checked, cut, kept aside and told."""

import errno
import os
import random
import struct
import time
from pathlib import Path

import pytest

from broker.log.errors import OutOfOrderSequenceError, StorageError
from broker.log.load import loader
from broker.log.load.loader import CUT_KEPT_MS
from broker.log.partition_log import PartitionLog
from broker.protocol.records import iter_batch_headers
from tests.support.cases import case
from tests.support.faulty_disk import FaultyDisk
from tests.unit.broker.log.helpers import (
    FakeClock,
    append,
    batch,
    open_log,
    read_all,
    sequenced,
    small_segments,
)

CONFIG = small_segments(600)


def _crashed(directory: Path, batches: int = 10) -> bytes:
    """A log that was never closed; answers its bytes."""
    log = open_log(directory, CONFIG)
    for n in range(batches):
        append(log, batch(2, value=b"%050d" % n), epoch=n // 4)
    return read_all(log)


def _segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def test_nothing_wrong_nothing_cut(tmp_path: Path) -> None:
    content = _crashed(tmp_path)
    log = open_log(tmp_path, CONFIG)
    assert log.findings == ()
    assert read_all(log) == content
    assert log.epochs.entries == ((0, 0), (1, 8), (2, 16))
    assert append(log, batch(), epoch=2).base_offset == 20


@pytest.mark.parametrize("bit", range(64))
def test_a_flipped_bit_of_a_base_offset_is_cut_where_it_stands(tmp_path: Path, bit: int) -> None:
    """It is outside the CRC: the batches beside it tell."""
    log = open_log(tmp_path)
    for n in range(4):
        append(log, batch(3, value=b"%d" % n), epoch=n)
    content = read_all(log)
    (path,) = _segments(tmp_path)
    damaged, second = bytearray(content), len(content) // 4
    damaged[second + 7 - bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(damaged)
    again = open_log(tmp_path)
    (finding,) = again.findings
    assert (finding.position, finding.is_torn_tail) == (second, False)
    assert read_all(again) == content[:second]
    assert again.epochs.entries == ((0, 0),)
    assert append(again, batch(), epoch=5).base_offset == 3


@pytest.mark.parametrize("error", [ValueError, KeyError, struct.error, RecursionError])
def test_a_log_that_cannot_be_read_takes_itself_out_and_not_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    _crashed(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise error("nonsense")

    monkeypatch.setattr(loader, "load_producers", fail)
    with pytest.raises(StorageError, match=rf"no broker writes .*{error.__name__}: .*nonsense"):
        open_log(tmp_path, CONFIG)


@pytest.mark.parametrize("cut", [1, 30, 61, 100])
def test_a_torn_tail_is_cut_and_kept(tmp_path: Path, cut: int) -> None:
    content = _crashed(tmp_path)
    last = _segments(tmp_path)[-1]
    size = last.stat().st_size
    os.truncate(last, size - cut)
    torn = last.read_bytes()
    log = open_log(tmp_path, CONFIG)
    (finding,) = log.findings
    assert finding.is_torn_tail
    assert finding.path == str(last)
    assert Path(finding.kept_path).read_bytes() == torn[finding.position :]
    assert content.startswith(read_all(log))
    assert log.log_end_offset == 18
    assert "torn tail at position" in str(finding)


def test_a_last_batch_with_a_bad_crc_is_a_torn_tail(tmp_path: Path) -> None:
    _crashed(tmp_path)
    last = _segments(tmp_path)[-1]
    content = bytearray(last.read_bytes())
    content[-1] ^= 1
    last.write_bytes(content)
    log = open_log(tmp_path, CONFIG)
    assert log.findings[0].is_torn_tail
    assert "CRC" in log.findings[0].reason
    assert log.log_end_offset == 18


def test_zeros_at_the_end_as_a_power_failure_leaves_them(tmp_path: Path) -> None:
    content = _crashed(tmp_path)
    last = _segments(tmp_path)[-1]
    with last.open("ab") as file:
        file.write(bytes(5000))
    log = open_log(tmp_path, CONFIG)
    assert read_all(log) == content
    assert log.findings[0].cut_bytes == 5000


def test_damage_in_the_middle_is_an_error_and_everything_behind_it_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = _crashed(tmp_path)
    segments = _segments(tmp_path)
    originals = [path.read_bytes() for path in segments]
    damaged = bytearray(originals[1])
    damaged[200] ^= 0xFF
    segments[1].write_bytes(damaged)
    log = open_log(tmp_path, CONFIG)
    kept_size = len(originals[0]) + log.findings[0].position
    assert read_all(log) == content[:kept_size]
    first, *others = log.findings
    assert not first.is_torn_tail
    assert Path(first.kept_path).read_bytes() == damaged[first.position :]
    assert [Path(f.kept_path).read_bytes() for f in others] == originals[2:]
    assert "Check the disk" in caplog.text
    assert str(segments[1]) in caplog.text
    # The log goes on from the cut, and a second crash finds it in order.
    append(log, batch(), epoch=9)
    again = open_log(tmp_path, CONFIG)
    assert again.findings == ()
    assert again.log_end_offset == log.log_end_offset


@pytest.mark.parametrize("call", ["fsync", "truncate"])
def test_a_cut_that_fails_leaves_no_copy_and_is_made_by_the_next_start(
    tmp_path: Path, call: str
) -> None:
    content = _crashed(tmp_path)
    last = _segments(tmp_path)[-1]
    os.truncate(last, last.stat().st_size - 30)
    with FaultyDisk(tmp_path, errno.EIO, calls={call}) as disk, pytest.raises(StorageError):
        open_log(tmp_path, CONFIG)
    assert disk.met
    assert not list(tmp_path.glob("*.cut-*"))
    log = open_log(tmp_path, CONFIG)
    assert content.startswith(read_all(log))
    assert [str(path) for path in tmp_path.glob("*.cut-*")] == [log.findings[0].kept_path]


def test_what_was_cut_off_is_kept_for_a_month(tmp_path: Path) -> None:
    _crashed(tmp_path)
    last = _segments(tmp_path)[-1]
    os.truncate(last, last.stat().st_size - 30)
    (kept,) = (finding.kept_path for finding in open_log(tmp_path, CONFIG).findings)
    os.utime(kept, (0, 0))  # a segment that was set aside is as old as its newest record
    now_ms = int(time.time() * 1000)
    open_log(tmp_path, CONFIG, clock=FakeClock(now_ms + CUT_KEPT_MS - 60_000))
    assert Path(kept).exists()
    open_log(tmp_path, CONFIG, clock=FakeClock(now_ms + CUT_KEPT_MS + 60_000))
    assert not Path(kept).exists()


def test_what_lies_before_the_recovery_point_is_not_read_again(tmp_path: Path) -> None:
    _crashed(tmp_path)
    first = _segments(tmp_path)[0]
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    log = open_log(tmp_path, CONFIG, recovery_point=10)
    assert log.findings == ()
    assert log.log_end_offset == 20
    assert open_log(tmp_path, CONFIG, recovery_point=6).findings == ()
    assert open_log(tmp_path, CONFIG, recovery_point=5).findings != ()


def test_indexes_are_made_anew_whatever_the_old_ones_say(tmp_path: Path) -> None:
    content = _crashed(tmp_path)
    for path in [*tmp_path.glob("*.index"), *tmp_path.glob("*.timeindex")]:
        path.write_bytes(random.Random(1).randbytes(96))
    log = open_log(tmp_path, CONFIG)
    assert read_all(log) == content
    for info in log.segments():
        assert info.index_entries <= 3
    log.close()
    for path in tmp_path.glob("*.index"):
        path.unlink()
    assert read_all(open_log(tmp_path, CONFIG, is_clean=True)) == content


def test_producers_are_found_again_from_snapshot_and_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for n in range(3):
        append(log, sequenced(n))
    log.roll()
    for n in range(3, 6):
        append(log, sequenced(n))
    again = open_log(tmp_path, recovery_point=3)
    for n in range(2, 6):
        assert append(again, sequenced(n)).duplicate
    # Of the batches before the snapshot only the newest is known, as in Kafka.
    with pytest.raises(OutOfOrderSequenceError):
        append(again, sequenced(1))
    append(again, sequenced(6))


def test_damaged_epochs_and_snapshots_are_made_anew(tmp_path: Path) -> None:
    _crashed(tmp_path)
    (tmp_path / "leader-epoch-checkpoint").write_text("rubbish")
    for path in tmp_path.glob("*.snapshot"):
        path.write_bytes(b"rubbish")
    log = open_log(tmp_path, CONFIG)
    assert log.epochs.entries == ((0, 0), (1, 8), (2, 16))


def test_epochs_behind_the_cut_are_forgotten(tmp_path: Path) -> None:
    _crashed(tmp_path)
    for path in _segments(tmp_path)[1:]:
        path.unlink()
    log = open_log(tmp_path, CONFIG)
    assert all(start < log.log_end_offset for _, start in log.epochs.entries)


def test_after_a_clean_shutdown_nothing_is_checked_but_a_changed_tail_is_noticed(
    tmp_path: Path,
) -> None:
    content = _crashed(tmp_path)
    log = open_log(tmp_path, CONFIG)
    log.close()
    clean = open_log(tmp_path, CONFIG, is_clean=True, recovery_point=20)
    assert read_all(clean) == content
    clean.close()
    os.truncate(_segments(tmp_path)[-1], 100)
    cut = open_log(tmp_path, CONFIG, is_clean=True, recovery_point=20)
    assert len(cut.findings) == 1
    assert content.startswith(read_all(cut))


@pytest.mark.parametrize("number", range(10))
def test_after_a_clean_stop_no_batch_is_served_under_a_flipped_base_offset(
    tmp_path: Path, number: int
) -> None:
    content = _crashed(tmp_path)
    open_log(tmp_path, CONFIG).close()
    segment = [path for path in _segments(tmp_path) if int(path.stem) <= 2 * number][-1]
    sound = segment.read_bytes()
    placed = {header.base_offset: position for header, position in iter_batch_headers(sound)}
    for bit in range(64):
        damaged = bytearray(sound)
        damaged[placed[2 * number] + 7 - bit // 8] ^= 1 << (bit % 8)
        segment.write_bytes(damaged)
        with case(bit):
            noticed = _read_each(tmp_path, content)
            assert noticed, "the flipped bit is served, or left out in silence"
        for path in tmp_path.glob("*.cut-*"):
            path.unlink()
        segment.write_bytes(sound)


def _read_each(directory: Path, content: bytes) -> bool:
    """Reads from each offset what is right, or nothing; whether damage was noticed."""
    log = open_log(directory, CONFIG, is_clean=True, recovery_point=20)
    noticed = bool(log.findings)
    for offset in range(0, log.log_end_offset, 2):
        try:
            raw = log.read_bytes(offset, max_bytes=1_000_000, max_offset=log.log_end_offset)
        except StorageError:
            noticed = True
            continue
        assert raw in content
        assert next(iter_batch_headers(raw))[0].base_offset == offset
    log.abandon()
    return noticed


def test_a_log_start_beyond_what_is_left_starts_anew(tmp_path: Path) -> None:
    _crashed(tmp_path)
    log = open_log(tmp_path, CONFIG, log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (500, 500, 1)


def test_leftovers_are_removed_and_strangers_left_alone(tmp_path: Path) -> None:
    _crashed(tmp_path)
    for name in (f"{0:020d}.log.deleted", f"{0:020d}.log.cleaned"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "notes.txt").write_text("mine")
    open_log(tmp_path, CONFIG)
    assert not list(tmp_path.glob("*.deleted")) + list(tmp_path.glob("*.cleaned"))
    assert (tmp_path / "notes.txt").exists()


def test_a_file_in_the_directorys_place_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.write_text("a file")
    with pytest.raises(StorageError, match=r"Opening .* failed"):
        PartitionLog.open(str(path), topic="orders", partition=0)
