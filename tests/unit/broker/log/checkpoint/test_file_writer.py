"""Small files replaced by a thread: in order, the newest content, nothing lost at the end."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from broker.log.checkpoint.file_writer import FileWriter
from broker.log.errors import ForceFailedError, StorageError
from tests.support.faulty_disk import FaultyDisk
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until


def says(content: str) -> Callable[[], bytes]:
    return content.encode


def test_the_loop_does_not_wait_for_the_disk_and_the_newest_is_written_last(
    tmp_path: Path,
) -> None:
    made, is_free, writer = list[str](), Event(), FileWriter()

    def slow(name: str, content: str) -> None:
        def make() -> bytes:
            assert is_free.wait(WAIT_S)
            made.append(content)
            return content.encode()

        writer.write(str(tmp_path / name), make, is_forced=True)

    slow("first", "held up")
    wait_until(lambda: not writer._waiting, "the thread has begun")
    slow("points", "old")
    slow("epochs", "2")
    slow("points", "new")  # speaks of epoch 2: must not be there before it
    assert not list(tmp_path.iterdir())
    is_free.set()
    writer.stop()

    assert made == ["held up", "2", "new"]
    assert (tmp_path / "points").read_text() == "new"
    assert writer.collect() == frozenset()


def test_what_is_refused_is_tried_again_and_what_has_lost_its_directory_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = list[StorageError]()
    writer = FileWriter(told.append)
    taken = tmp_path / "taken"
    taken.mkdir()
    writer.write(str(taken), says("x"), is_forced=True)
    writer.write(str(tmp_path / "deleted" / "file"), says("x"), is_forced=True)
    assert not writer.stop()
    assert writer.collect() == {str(taken)}
    assert "Writing" in caplog.text
    assert len(told) == 2

    taken.rmdir()
    wait_until(lambda: not writer.collect() and taken.is_file(), "it is written in the end")
    assert writer.stop()
    assert taken.read_text() == "x"


def test_an_old_file_that_would_be_believed_goes_while_the_disk_refuses_the_new_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "epochs").write_text("old")
    (tmp_path / "points").write_text("old")
    with FaultyDisk(tmp_path, errno.ENOSPC, calls={"write"}):
        writer = FileWriter()
        writer.write(str(tmp_path / "epochs"), says("new"), is_forced=False)
        writer.write(str(tmp_path / "points"), says("new"), is_forced=True)
        assert not writer.stop()
    assert os.listdir(tmp_path) == ["points"]


def test_a_failed_fsync_is_told_whatever_is_written_after_it(tmp_path: Path) -> None:
    told = list[StorageError]()
    is_free, writer = Event(), FileWriter(told.append)
    path = str(tmp_path / "points")

    def held_up() -> bytes:
        assert is_free.wait(WAIT_S)
        return b"old"

    with FaultyDisk(tmp_path, errno.EIO, calls={"fsync"}, times=1) as disk:
        writer.write(path, held_up, is_forced=True)
        wait_until(lambda: not writer._waiting, "the thread has begun")
        writer.write(path, says("new"), is_forced=True)  # waits while the old one fails
        is_free.set()
        wait_until(lambda: not writer._is_running, "the thread is done")
        writer.write(path, says("newest"), is_forced=True)  # comes before anybody has looked
        writer.collect()
        assert not writer.stop()
    assert disk.met
    assert any(isinstance(error, ForceFailedError) for error in told)
    assert not Path(path).exists(), "what would succeed now proves nothing"
