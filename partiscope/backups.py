"""Backups of a data directory: one archive, whole or not there; restored whole or not at all.

An archive is written beside its name and renamed once it is on disk. A restore unpacks beside the
data directory, and changes places once all is there. So whoever is killed midway leaves what was.
"""

import gzip
import io
import json
import os
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Final

from control.model.units import bytes_text
from partiscope.bundled.founded_cluster import LAYOUT_FILE
from partiscope.layout import LOCK_FILE, hold

FORMAT: Final = 1
ABOUT: Final = "partiscope-backup.json"
"""The first file of an archive."""
END: Final = "partiscope-backup.end"
"""The last one: an archive without it was cut short."""
LEFT_OUT: Final = frozenset({LOCK_FILE, "logs"})
TOLD_EVERY_S: Final = 2.0
_COPIED_AT_ONCE: Final = 1 << 20

Say = Callable[[str], None]


class BackupError(Exception):
    """An archive cannot be made or restored; the text says why and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """Figures of an archive that was written or restored."""

    file: str
    data: str
    files: int
    size_bytes: int
    """Of the files, unpacked."""
    version: str
    """Of the Partiscope that wrote it."""
    before: str | None = None
    """Where a restore has put the directory that was there; null: none was."""


class _Progress:
    """Tells every other second how far it is."""

    def __init__(self, what: str, say: Say) -> None:
        self._what, self._say = what, say
        self._next_s = time.monotonic() + TOLD_EVERY_S
        self.files = self.size_bytes = 0

    def add(self, size_bytes: int) -> None:
        self.files += 1
        self.size_bytes += size_bytes
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + TOLD_EVERY_S
            self._say(f"{self._what} {self.files:,} files, {bytes_text(self.size_bytes)}")


def write_backup(data: Path, file: Path, say: Say) -> Backup:
    """Archive a data directory that nothing runs from.

    Raises:
        LayoutError: something runs from it.
        BackupError: it holds no installation, or the archive cannot be written.
    """
    if not (data / LAYOUT_FILE).is_file():
        raise BackupError(f"{data} holds no installation: name it by --data")
    if file.exists() or file.resolve().is_relative_to(data.resolve()):
        why = "is there already" if file.exists() else f"lies in {data}"
        raise BackupError(f"{file} {why}: choose another file")
    hold(data)
    part = file.with_name(f"{file.name}.part")
    about = {"format": FORMAT, "version": version("partiscope"), "made_ms": int(time.time() * 1000)}
    try:
        with _opened(part) as raw, tarfile.open(fileobj=raw, mode="w:gz", compresslevel=1) as tar:
            _add(tar, ABOUT, json.dumps(about).encode())
            progress = _Progress("backed up", say)
            for path in _paths(data):
                tar.add(path, arcname=f"data/{path.relative_to(data)}", recursive=False)
                progress.add(path.lstat().st_size if path.is_file() else 0)
            _add(tar, END, b"")
        _sync(part)
        part.rename(file)
        _sync(file.parent)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise BackupError(f"cannot write {file}: {error.strerror or error}") from error
    return Backup(
        file=str(file),
        data=str(data),
        files=progress.files,
        size_bytes=progress.size_bytes,
        version=str(about["version"]),
    )


def restore_backup(file: Path, data: Path, say: Say) -> Backup:
    """Put an archive in the place of a data directory, which is kept beside it.

    Raises:
        LayoutError: something runs from the directory.
        BackupError: the archive is damaged, or cannot be put there.
    """
    data = data.resolve()
    is_there = data.exists()
    if is_there:
        hold(data)
    staging = data.with_name(f"{data.name}.restoring")
    before = _free_name(data.with_name(f"{data.name}.before-{time.strftime('%Y%m%dT%H%M%S')}"))
    progress = _Progress("restored", say)
    try:
        if staging.exists():
            shutil.rmtree(staging)  # a restore that was killed
        staging.mkdir(mode=0o700, parents=True)
        written_by = _unpack(file, staging, progress)
        if is_there:
            data.rename(before)
        staging.rename(data)
        _sync(data.parent)
    except (OSError, EOFError, tarfile.TarError, zlib.error, ValueError) as error:
        shutil.rmtree(staging, ignore_errors=True)
        if is_there and before.exists() and not data.exists():
            before.rename(data)
        raise BackupError(f"cannot restore {file}: {error}. {data} is as it was") from error
    return Backup(
        file=str(file),
        data=str(data),
        files=progress.files,
        size_bytes=progress.size_bytes,
        version=written_by,
        before=str(before) if is_there else None,
    )


def _free_name(path: Path) -> Path:
    """The path, or the first beside it that nobody has."""
    names = (path.with_name(f"{path.name}-{number}") for number in count(1))
    return next(it for it in chain((path,), names) if not it.exists())


def _unpack(file: Path, into: Path, progress: _Progress) -> str:
    """All of an archive; answers which version wrote it. Raises ValueError: it is none, or it has
    a member that no backup has."""
    with gzip.open(file) as packed, tarfile.open(fileobj=packed, mode="r:") as tar:
        first = tar.next()
        if first is None or first.name != ABOUT:
            raise ValueError("it is no backup of Partiscope")
        about = json.loads(_content(tar, first))
        if about.get("format") != FORMAT:
            raise ValueError(f"Partiscope {about.get('version')} wrote it: restore it by that one")
        last = ""
        for member in tar:
            last = member.name
            if last not in (ABOUT, END):
                _unpack_member(tar, member, into)
                progress.add(member.size)
        while packed.read(_COPIED_AT_ONCE):
            pass  # gzip compares its checksum where it ends
    if last != END:
        raise ValueError("it was cut short")
    return str(about.get("version"))


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    parts = PurePosixPath(member.name).parts
    if parts[:1] != ("data",) or ".." in parts or not (member.isfile() or member.isdir()):
        raise ValueError(f"{member.name!r} is no file of a backup")
    path = into.joinpath(*parts[1:])
    if member.isdir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    with source, _opened(path) as target:
        shutil.copyfileobj(source, target, _COPIED_AT_ONCE)
        target.flush()
        os.fsync(target.fileno())
    path.chmod(member.mode & 0o700)
    os.utime(path, (member.mtime, member.mtime))


def _paths(data: Path) -> Iterator[Path]:
    """Files and folders to keep: no sockets, nothing that a start makes anew."""
    for path in sorted(data.rglob("*")):
        is_kept = path.relative_to(data).parts[0] not in LEFT_OUT
        if is_kept and not path.is_symlink() and (path.is_file() or path.is_dir()):
            yield path


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    source = tar.extractfile(member)
    return b"" if source is None else source.read()


def _opened(path: Path) -> io.BufferedWriter:
    """A file for its owner alone."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return io.BufferedWriter(io.FileIO(number, "wb"))


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
