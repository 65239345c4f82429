"""Small files replaced by a thread: in order, the newest content, nothing lost at the end."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from broker.log.file_writer import FileWriter
from tests.support.settle import wait_until


def says(content: str) -> Callable[[], bytes]:
    return content.encode


def test_the_loop_does_not_wait_for_the_disk_and_the_newest_is_written_last(
    tmp_path: Path,
) -> None:
    made, is_free, writer = list[str](), Event(), FileWriter()

    def slow(name: str, content: str) -> None:
        def make() -> bytes:
            assert is_free.wait(60)
            made.append(content)
            return content.encode()

        writer.write(str(tmp_path / name), make)

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


def test_what_is_refused_is_told_once_and_what_has_lost_its_directory_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = FileWriter()
    (tmp_path / "taken").mkdir()
    writer.write(str(tmp_path / "taken"), says("x"))
    writer.write(str(tmp_path / "deleted" / "file"), says("x"))
    writer.stop()

    assert writer.collect() == {str(tmp_path / "taken")}
    assert "Writing" in caplog.text
    assert writer.collect() == frozenset()
    writer.write(str(tmp_path / "again"), says("after a stop"))
    writer.stop()
    assert sorted(os.listdir(tmp_path)) == ["again", "taken"]
