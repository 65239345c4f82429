"""`down --purge`: what was made goes, all else stays."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from partiscope.bundled.founded_cluster import LAYOUT_FILE, LayoutError
from partiscope.bundled.secure_cluster import FOLDER
from partiscope.layout import LOCK_FILE, ClusterLayout, hold
from partiscope.removal import end, find_holder, find_made, remove
from partiscope.settings import ClusterSettings
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking

ID: Final = "cGFydGlzY29wZS10ZXN0cw"
MADE: Final = (
    LAYOUT_FILE,
    LOCK_FILE,
    "installation.json",
    "installation.key",
    "broker-101.properties",
    "broker-101/meta.properties",
    "broker-101/orders-0/00000000000000000000.log",
    "store/manifest.json",
    "store/now/.partiscope",
    "checkpoint/metadata",
    "checkpoint/offsets/0",
    "logs/broker-101.log",
    "logs/metrics.log.1",
)
OTHERS: Final = (
    "notes.txt",
    "logs/nginx.log",
    "broker-7/meta.properties",
    "broker-8/thesis.txt",
    "backup/cluster.json",
)


def made_in(data: Path, *names: str) -> Path:
    """A data directory with these files, of its cluster or of another one."""
    for name in names:
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(f"cluster.id={ID}\n" if "broker-101/" in name else "x" * 10)
    identity = {"cluster_id": ID, "first_id": 101, "brokers": 1}
    (data / LAYOUT_FILE).write_text(json.dumps(identity))
    return data


def left_in(data: Path) -> set[str]:
    return {str(it.relative_to(data)) for it in data.rglob("*") if it.is_file()}


@pytest.fixture(autouse=True)
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Let go of locks, as the end of a process does."""
    opened: list[int] = []
    real = os.open

    def remembered(path: Path, flags: int, *more: int, **named: int) -> int:
        number = real(path, flags, *more, **named)
        if str(path).endswith(LOCK_FILE):
            opened.append(number)
        return number

    monkeypatch.setattr(os, "open", remembered)

    def close() -> None:
        while opened:
            with suppress(OSError):
                os.close(opened.pop())

    yield close
    close()


def test_a_directory_with_nothing_else_goes_altogether(tmp_path: Path) -> None:
    data = made_in(tmp_path / "data", *MADE)
    found = find_made(data)
    assert not found.others
    assert found.files == len(MADE)
    assert found.size_bytes == sum((data / it).stat().st_size for it in MADE)
    remove(found)
    assert not data.exists()


def test_what_others_made_stays_and_is_named(tmp_path: Path) -> None:
    data = made_in(tmp_path / "data", *MADE, *OTHERS)
    found = find_made(data)
    assert {str(it.relative_to(data)) for it in found.others} == {
        "notes.txt", "logs/nginx.log", "broker-7", "broker-8", "backup",
    }  # fmt: skip
    remove(found)
    assert left_in(data) == set(OTHERS)


def test_a_link_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    theirs = made_in(tmp_path / "theirs", "broker-101/meta.properties", "store/manifest.json")
    data = made_in(
        tmp_path / "data", *(it for it in MADE if not it.startswith(("store", "broker")))
    )
    for name in ("store", "broker-101", "logs/metrics.log"):
        (data / name).symlink_to(theirs / name.partition("/")[0])
    remove(find_made(data))
    assert left_in(theirs) == {LAYOUT_FILE, "broker-101/meta.properties", "store/manifest.json"}


@pytest.mark.parametrize("content", [None, "{}", "not json"])
def test_a_folder_that_is_no_data_directory_is_refused(tmp_path: Path, content: str | None) -> None:
    data = made_in(tmp_path / "data", *MADE)
    (data / LAYOUT_FILE).unlink()
    if content is not None:
        (data / LAYOUT_FILE).write_text(content)
    with pytest.raises(LayoutError):
        find_made(data)
    assert left_in(data) >= set(MADE) - {LAYOUT_FILE}


def test_one_that_was_killed_midway_can_be_typed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: Callable[[], None]
) -> None:
    """Killed after each single step, until nothing is left."""
    data = made_in(tmp_path / "data", *MADE)
    steps = 0
    while data.exists():
        steps += 1
        assert steps < 60
        left = len(left_in(data))
        with monkeypatch.context() as killed:
            budget = [2]  # its lock comes anew each time

            def unlink(path: Path, missing_ok: bool = False, left: list[int] = budget) -> None:
                if not left[0]:
                    raise KeyboardInterrupt
                left[0] -= 1
                with suppress(FileNotFoundError):
                    os.unlink(path)

            killed.setattr(Path, "unlink", unlink)
            with suppress(KeyboardInterrupt):
                remove(find_made(data))
        release()
        assert not data.exists() or len(left_in(data)) < left


def holder(data: Path, word: str) -> subprocess.Popen[str]:
    """A process that holds the directory as `up` does, called by that word."""
    code = (
        "import pathlib, time, sys, partiscope.layout as it; it.hold(pathlib.Path(sys.argv[2])); "
        "print('held', flush=True); time.sleep(60)"
    )
    held = subprocess.Popen(
        [sys.executable, "-c", code, word, str(data)], stdout=subprocess.PIPE, text=True
    )
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    return held


def test_who_runs_is_found_and_ended(tmp_path: Path) -> None:
    data = made_in(tmp_path / "data", *MADE)
    assert find_holder(data) is None
    with holder(data, "up") as up:
        assert find_holder(data) == up.pid
        with pytest.raises(LayoutError):
            remove(find_made(data))
        end(data, up.pid)
        assert up.wait(WAIT_S) == -signal.SIGTERM
    assert find_holder(data) is None


@pytest.mark.parametrize("lie", [None, "1", "", "²"])
def test_nobody_else_is_ended(tmp_path: Path, lie: str | None) -> None:
    """A backup that runs, and a lock of another machine or container, where ids mean others."""
    data = made_in(tmp_path / "data", *MADE)
    with holder(data, "backup" if lie is None else "up") as other:
        if lie is not None:
            (data / LOCK_FILE).write_text(lie)
        with pytest.raises(LayoutError) as error:
            find_holder(data)
        assert not lacking(str(error.value), "cannot be ended from here")
        assert other.poll() is None
        other.kill()


def test_a_directory_that_was_only_held_is_told(tmp_path: Path) -> None:
    hold(tmp_path)
    with pytest.raises(LayoutError, match=LAYOUT_FILE):
        find_made(tmp_path)
    assert (tmp_path / LOCK_FILE).exists()


def test_keys_and_logins_of_a_secure_cluster_go_and_a_folder_of_that_name_stays(
    tmp_path: Path,
) -> None:
    secure, plain = tmp_path / "secure", tmp_path / "plain"
    for data, settings in ((secure, ClusterSettings(secure=True)), (plain, ClusterSettings())):
        ClusterLayout.prepare(data, settings)
    theirs = plain / FOLDER / "notes.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine")
    assert secure / FOLDER in find_made(secure).made
    assert plain / FOLDER not in find_made(plain).made
