"""Backups of a data directory: whole or not there, restored whole or not at all."""

import gzip
import io
import json
import os
import signal
import socket
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from partiscope import backups, layout
from partiscope.backups import ABOUT, BackupError, restore_backup, write_backup
from partiscope.bundled.founded_cluster import LAYOUT_FILE, LayoutError
from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit
from tests.support.cases import case
from tests.support.phrases import lacking

OLD, NEW = b"old", b"new"


def silent(_: str) -> None:
    """Nobody listens."""


def installation(data: Path, content: bytes) -> Path:
    """What a data directory may hold, also what no backup has."""
    (data / "broker-101/orders-0").mkdir(parents=True)
    (data / "store/commits").mkdir(parents=True)
    (data / "logs").mkdir()
    (data / LAYOUT_FILE).write_bytes(content)
    (data / "broker-101/orders-0/0.log").write_bytes(content * 50_000)
    (data / "installation.key").write_bytes(b"secret")
    (data / "installation.key").chmod(0o600)
    (data / "logs/executor.log").write_bytes(b"a line\n")
    (data / "broker-101/orders-0/tämp").write_bytes(b"")
    return data


def content_of(data: Path) -> dict[str, bytes | None]:
    """Files, and folders as None."""
    return {
        str(path.relative_to(data)): path.read_bytes() if path.is_file() else None
        for path in sorted(data.rglob("*"))
        if path.name not in ("logs", ".lock", "executor.log")
    }


@pytest.fixture(autouse=True)
def _locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lock lasts as long as its process: one for each call here."""
    opened: list[int] = []
    real = os.open

    def remember(path: Any, *rest: Any, **named: Any) -> int:
        number = real(path, *rest, **named)
        file = Path(os.fsdecode(path))
        if file.name == layout.LOCK_FILE and file.with_name(LAYOUT_FILE).exists():
            opened.append(number)
        return number

    umask = os.umask(0o022)
    monkeypatch.setattr(os, "open", remember)
    yield
    os.umask(umask)
    for number in opened:
        os.close(number)


def in_child(do: Callable[[], object]) -> int:
    """The status of a process that does it: 0, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            do()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(number: int, do: Callable[[], object]) -> Callable[[], None]:
    """The same, and a SIGKILL at the so many-th step that writes."""

    def act() -> None:
        left = iter(range(number))

        def counted(real: Callable[..., Any]) -> Callable[..., Any]:
            def step(*given: Any, **named: Any) -> Any:
                if next(left, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given, **named)

            return step

        for owner, name in ((Path, "rename"), (tarfile.TarFile, "add"), (backups, "_sync"),
                            (backups, "_opened"), (backups, "_add")):  # fmt: skip
            setattr(owner, name, counted(getattr(owner, name)))
        do()

    return act


def test_what_was_backed_up_is_there_again_and_what_was_there_is_kept(tmp_path: Path) -> None:
    data, file = installation(tmp_path / "data", OLD), tmp_path / "a.tgz"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(data / "outages.sock"))
        assert in_child(partial(write_backup, data, file, silent)) == 0
    (data / "outages.sock").unlink()
    wanted = content_of(data)
    assert file.stat().st_mode & 0o077 == 0
    (data / LAYOUT_FILE).write_bytes(NEW)
    assert in_child(partial(restore_backup, file, data, silent)) == 0
    assert content_of(data) == wanted
    assert (data / "installation.key").stat().st_mode & 0o777 == 0o600
    assert not (data / "logs").exists()
    (before,) = tmp_path.glob("data.before-*")
    assert (before / LAYOUT_FILE).read_bytes() == NEW
    elsewhere = tmp_path / "further/there"
    assert restore_backup(file, elsewhere, silent).before is None
    assert content_of(elsewhere) == wanted


def test_a_backup_that_is_killed_is_not_there_and_the_next_one_is(tmp_path: Path) -> None:
    data = installation(tmp_path / "data", OLD)
    status, number = -signal.SIGKILL, 0
    while status == -signal.SIGKILL:
        file = tmp_path / f"{number}.tgz"
        status = in_child(killed_at(number, partial(write_backup, data, file, silent)))
        if status == -signal.SIGKILL and not file.exists():
            assert in_child(partial(write_backup, data, file, silent)) == 0
        there = tmp_path / f"restored-{number}"
        assert restore_backup(file, there, silent).files == len(content_of(data))
        assert content_of(there) == content_of(data)
        number += 1
    assert (status, number > 8) == (0, True)


def test_a_restore_that_is_killed_leaves_what_was_and_the_next_one_ends_it(tmp_path: Path) -> None:
    source = installation(tmp_path / "source", NEW)
    file = tmp_path / "a.tgz"
    assert in_child(partial(write_backup, source, file, silent)) == 0
    new, status, number = content_of(source), -signal.SIGKILL, 0
    while status == -signal.SIGKILL:
        data = installation(tmp_path / f"{number}/data", OLD)
        old = content_of(data)
        status = in_child(killed_at(number, partial(restore_backup, file, data, silent)))
        with case(number):
            kept = [*data.parent.glob("data.before-*")]
            if data.exists():
                assert content_of(data) == (new if kept else old)
            assert in_child(partial(restore_backup, file, data, silent)) == 0
            assert content_of(data) == new
            assert old in [content_of(it) for it in data.parent.glob("data.before-*")]
            assert not data.with_name("data.restoring").exists()
        number += 1
    assert (status, number > 6) == (0, True)


def test_a_damaged_archive_changes_nothing(tmp_path: Path) -> None:
    data, file = installation(tmp_path / "data", OLD), tmp_path / "a.tgz"
    assert in_child(partial(write_backup, data, file, silent)) == 0
    whole, wanted = file.read_bytes(), content_of(data)
    cuts = [whole[:size] for size in range(0, len(whole), max(len(whole) // 25, 1))]
    flips = [
        whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        for at in range(20, len(whole), max(len(whole) // 25, 1))
    ]
    unpacked = gzip.decompress(whole)
    refused = 0
    shorter = gzip.compress(unpacked[: unpacked.index(b"partiscope-backup.end")])
    for number, damaged in enumerate([*cuts, *flips, shorter, b"no archive", gzip.compress(b"x")]):
        (tmp_path / "damaged.tgz").write_bytes(damaged)
        there = tmp_path / f"new-{number}"
        with case(number):
            try:
                restore_backup(tmp_path / "damaged.tgz", there, silent)
            except BackupError:
                refused += 1
                assert not there.exists()
            else:  # bits between the last block and the checksum mean nothing
                assert content_of(there) == wanted
            assert not there.with_name(f"{there.name}.restoring").exists()
    assert refused >= len(cuts) + len(flips)
    (tmp_path / "damaged.tgz").write_bytes(cuts[-1])
    assert in_child(partial(restore_backup, tmp_path / "damaged.tgz", data, silent)) == 1
    assert content_of(data) == wanted


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("data/../../out", tarfile.REGTYPE),
        ("/etc/out", tarfile.REGTYPE),
        ("out", tarfile.REGTYPE),
        ("data/link", tarfile.SYMTYPE),
        ("data/link", tarfile.LNKTYPE),
        ("data/fifo", tarfile.FIFOTYPE),
    ],
)
def test_nothing_is_written_outside_or_as_a_link(tmp_path: Path, name: str, kind: bytes) -> None:
    file = tmp_path / "a.tgz"
    with tarfile.open(file, "w:gz") as tar:
        about = json.dumps({"format": 1, "version": "1"}).encode()
        for named, content, is_a in ((ABOUT, about, tarfile.REGTYPE), (name, b"", kind)):
            member = tarfile.TarInfo(named)
            member.size, member.type, member.linkname = len(content), is_a, "../../out"
            tar.addfile(member, io.BytesIO(content))
    with pytest.raises(BackupError, match="is no file of a backup"):
        restore_backup(file, tmp_path / "in/data", silent)
    assert not [*tmp_path.rglob("out")]


def test_one_of_a_newer_format_names_who_wrote_it(tmp_path: Path) -> None:
    file = tmp_path / "a.tgz"
    with tarfile.open(file, "w:gz") as tar:
        backups._add(tar, ABOUT, b'{"format": 2, "version": "9.1"}')
    with pytest.raises(BackupError, match=r"Partiscope 9\.1 wrote it"):
        restore_backup(file, tmp_path / "data", silent)


def test_nothing_is_done_while_something_runs_from_there(tmp_path: Path) -> None:
    data, file = installation(tmp_path / "data", OLD), tmp_path / "a.tgz"
    assert in_child(partial(write_backup, data, file, silent)) == 0
    layout.hold(data)
    with pytest.raises(LayoutError, match="in use"):
        write_backup(data, tmp_path / "b.tgz", silent)
    with pytest.raises(LayoutError, match="in use"):
        restore_backup(file, data, silent)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["a.tgz", "data"]


def test_commands_tell_what_they_did_and_refuse_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, file = installation(tmp_path / "data", OLD), tmp_path / "a.tgz"
    where = ["--data", str(data)]
    assert run(["backup", str(file), *where, "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["file"] == str(file)
    assert run(["backup", str(file), *where]) == Exit.FAILED
    assert not lacking(capsys.readouterr().err, "is there already", "another file")
    assert run(["backup", str(data / "in.tgz"), *where]) == Exit.FAILED
    assert (
        run(["restore", str(tmp_path / "none.tgz"), "--data", str(tmp_path / "n")]) == Exit.FAILED
    )
    assert run(["restore", str(file), "--data", str(tmp_path / "new")]) == Exit.DONE
    assert not lacking(capsys.readouterr().out, "restored", "files and folders")


def test_long_ones_tell_how_far_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    data = installation(tmp_path / "data", OLD)
    monkeypatch.setattr(backups, "TOLD_EVERY_S", 0.0)
    write_backup(data, tmp_path / "a.tgz", said.append)
    assert [it for it in said if it.startswith("backed up")]
