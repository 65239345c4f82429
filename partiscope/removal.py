"""Ends what runs from a data directory, and removes what was made there; all else stays."""

import fcntl
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.config.properties import PropertiesError, parse_properties
from control.operations.broker_stop_client import SOCKET_FILE
from partiscope.bundled.founded_cluster import CA_KEY, LAYOUT_FILE, LayoutError, founded_id
from partiscope.bundled.secure_cluster import FOLDER
from partiscope.installation import INSTALLATION_FILE, TOUR_MARK
from partiscope.layout import BROKER_FOLDER, LOCK_FILE, hold
from partiscope.proof_keys import KEY_FILE

END_TIMEOUT_S: Final = 20.0
_LOOKED_EVERY_S: Final = 0.1
_OWN_FILES: Final = (INSTALLATION_FILE, KEY_FILE, TOUR_MARK, SOCKET_FILE, LOCK_FILE, LAYOUT_FILE)
"""The layout goes last: without it nothing there is known to be ours."""
_LOGS: Final = "logs"
_PROPERTIES: Final = re.compile(r"broker-\d+\.properties")
_LOG: Final = re.compile(
    r"(?:broker-\d+|metrics|executor|alerts|dashboard|demo|collector(?:-.+)?)\.log(?:\.1)?"
)
_BROKER_MARK, _STORE_MARK, _CHECKPOINT_MARK = "meta.properties", "manifest.json", "metadata"
_MARKS: Final = frozenset({_BROKER_MARK, _STORE_MARK, _CHECKPOINT_MARK, CA_KEY})
_RUNS_UNTIL_ENDED: Final = frozenset({b"up", b"cluster"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Paths that Partiscope has made in a data directory, and others that stay."""

    data: Path
    made: tuple[Path, ...]
    """Files and whole folders, in the order in which they go."""
    others: tuple[Path, ...]
    size_bytes: int
    files: int


def find_made(data: Path) -> Removal:
    """Everything that starts from this directory have made there.

    Raises:
        LayoutError: no cluster was ever started from it, so nothing there is known to be ours.
    """
    cluster_id = founded_id(data)
    if cluster_id is None:
        raise LayoutError(
            f"{data} is no data directory of Partiscope: it has no {LAYOUT_FILE}. Nothing was "
            "removed; name the directory by --data."
        )
    made = tuple(path for path in _known(data, cluster_id) if os.path.lexists(path))
    logs = data / _LOGS
    has_logs = logs.is_dir() and not logs.is_symlink()
    there = [*data.iterdir(), *(logs.iterdir() if has_logs else ())]
    others = sorted(set(there) - {*made, *((logs,) if has_logs else ())})
    files = [file for path in made for file in _files(path)]
    return Removal(
        data=data,
        made=made,
        others=tuple(others),
        size_bytes=sum(file.lstat().st_size for file in files),
        files=len(files),
    )


def remove(removal: Removal) -> None:
    """Remove what was found; the directory itself where nothing else is in it.

    Raises:
        LayoutError: something runs from it.
        OSError: the system refused.
    """
    hold(removal.data)
    for path in removal.made:
        _remove(path)
    for folder in (removal.data / _LOGS, removal.data):
        with suppress(OSError):  # something else is in it
            folder.rmdir()


def _remove(path: Path) -> None:
    """A folder loses its mark last: a removal that is killed can be typed again."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for child in sorted(path.iterdir(), key=lambda it: it.name in _MARKS):
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()
    path.rmdir()


def find_holder(data: Path) -> int | None:
    """The process id of the `up` or `cluster` that runs from a directory; None: none does.

    Raises:
        LayoutError: something has the directory that cannot be ended from here.
    """
    with _lock_of(data) as lock:
        if lock is None or _is_free(lock):
            return None
        text = os.read(lock, 32).decode(errors="replace").strip()
        if text.isascii() and text.isdigit() and _has_open(int(text), lock):
            return int(text)
    raise LayoutError(
        f"data directory {data} is in use by a process that cannot be ended from here. End it "
        "where it was started: Ctrl-C, `docker compose stop`, `systemctl stop`."
    )


def end(data: Path, pid: int) -> None:
    """Ask a holder to end, and wait until it has.

    Raises:
        LayoutError: it still runs.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline_s = time.monotonic() + END_TIMEOUT_S
    while True:
        with _lock_of(data) as lock:
            if lock is None or _is_free(lock):
                return
        if time.monotonic() > deadline_s:
            raise LayoutError(
                f"process {pid} still runs from {data} after {END_TIMEOUT_S:.0f} s. See its "
                "terminal, or end it by `kill`."
            )
        time.sleep(_LOOKED_EVERY_S)


def is_in_use(data: Path) -> bool:
    """Whether `up` or `cluster` runs from a data directory."""
    with _lock_of(data) as lock:
        return lock is not None and not _is_free(lock)


@contextmanager
def _lock_of(data: Path) -> Iterator[int | None]:
    """The lock file, open; None: there is none."""
    try:
        lock = os.open(data / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    try:
        yield lock
    finally:
        os.close(lock)


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_open(pid: int, lock: int) -> bool:
    """Whether a process is a start of ours that has the lock: in a container ids mean others."""
    ours, process = os.fstat(lock), Path(f"/proc/{pid}")
    with suppress(OSError):
        if not _RUNS_UNTIL_ENDED.intersection((process / "cmdline").read_bytes().split(b"\0")):
            return False
        for file in (process / "fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(file.stat(), ours):
                    return True
    return False


def _known(data: Path, cluster_id: str) -> Iterator[Path]:
    """Paths with our names, each folder with a mark that no other program leaves there."""
    for path in sorted(data.iterdir()):
        is_broker = BROKER_FOLDER.fullmatch(path.name) and _cluster_of(path) == cluster_id
        is_config = _PROPERTIES.fullmatch(path.name) and path.is_file()
        if (is_broker or is_config) and not path.is_symlink():
            yield path
    marks = {"store": _STORE_MARK, "checkpoint": _CHECKPOINT_MARK, FOLDER: CA_KEY}
    for folder, mark in ((data / name, mark) for name, mark in marks.items()):
        if (folder / mark).is_file() and not folder.is_symlink():
            yield folder
    logs = data / _LOGS
    if logs.is_dir() and not logs.is_symlink():
        yield from (path for path in sorted(logs.iterdir()) if _LOG.fullmatch(path.name))
    yield from (data / name for name in _OWN_FILES)


def _cluster_of(folder: Path) -> str | None:
    try:
        return parse_properties((folder / _BROKER_MARK).read_text()).get("cluster.id")
    except (OSError, PropertiesError, UnicodeDecodeError):
        return None


def _files(path: Path) -> Iterator[Path]:
    """The file, or all below the folder."""
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for root, _, names in os.walk(path):
        yield from (Path(root, name) for name in names)
