"""What is forced to the disk, and that nothing goes around the functions that do it."""

import ast
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

import broker
from broker.log.disk.durable import replace_file
from broker.raft.snapshot_files import SnapshotFiles
from broker.raft.snapshot_id import SnapshotId
from broker.raft.vote import Vote
from broker.raft.vote_file import VoteFile
from tests.unit.broker.log.helpers import append, batch, open_log

BROKER: Final = Path(broker.__file__).parent
OF_OS: Final = frozenset({"fsync", "fdatasync", "rename", "renames", "replace", "sync"})


def _goes_around(node: ast.AST) -> bool:
    """``os.rename(…)`` and ``path.replace(target)``; ``text.replace`` has two arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    of, name = node.func.value, node.func.attr
    if isinstance(of, ast.Name) and of.id in ("os", "shutil"):
        return name in OF_OS or name == "move"
    return name == "rename" or (name == "replace" and len(node.args) == 1 and not node.keywords)


def test_files_are_renamed_and_forced_in_one_place_only() -> None:
    found = {
        str(path.relative_to(BROKER))
        for path in BROKER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if _goes_around(node)
    }
    assert found == {"log/disk/durable.py"}


@contextmanager
def forced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of what is forced meanwhile, in order."""
    names = list[str]()
    real = os.fsync

    def fsync(fd: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
        real(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield names


def test_a_replaced_file_is_forced_and_then_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forced(monkeypatch) as names:
        replace_file(str(tmp_path / "a"), b"x", is_forced=True)
        VoteFile(tmp_path, voters=(1,)).write(Vote(epoch=3))
    assert names == ["a.tmp", tmp_path.name, "quorum-state.tmp", tmp_path.name]


async def test_a_snapshot_is_forced_and_then_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SnapshotFiles(tmp_path)
    own, fetched = (SnapshotId(end_offset=end, epoch=1) for end in (4, 7))
    with forced(monkeypatch) as names:
        await files.write(own, [b"a"], now_ms=0)
    assert names == [f"{own.file_name}.part", tmp_path.name]
    (leader := tmp_path / "leader").mkdir()
    await SnapshotFiles(leader).write(fetched, [b"a"], now_ms=0)
    files.write_part(fetched, 0, (leader / fetched.file_name).read_bytes())
    with forced(monkeypatch) as names:
        files.adopt(fetched)
    assert names == [f"{fetched.file_name}.part", tmp_path.name]


def test_the_name_of_a_fresh_segment_is_forced_with_its_first_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    log = open_log(directory)

    def flush() -> list[str]:
        append(log, batch())
        job = log.durability.flush_job(is_with_active=True, is_records_only=True)
        assert job is not None
        with forced(monkeypatch) as names:
            job.run()
        log.durability.handle_flushed(job)
        return [name for name in names if not name.endswith("index")]

    first, second = "00000000000000000000.log", "00000000000000000002.log"
    assert flush() == [first, directory.name, tmp_path.name]
    assert flush() == [first]
    log.roll()
    assert flush() == [second, directory.name, tmp_path.name]
    assert flush() == [second]
