"""Files that an operator names in a flag, a setting or the environment.

They are read whole, or refused with the file, the reason and the next step. Reading never waits
for a pipe without a writer, nor for a device.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

BYTES_MAX: Final = 256 << 20
"""A longer file is refused; the plan of 200,000 partitions has 20 MB."""
_CHUNK_BYTES: Final = 1 << 20
_REASONS: Final = {
    errno.ENOENT: ("there is no such file", "Correct the path"),
    errno.EACCES: ("permission is denied", "Let this user read it, and enter its directories"),
    errno.EISDIR: (
        "it is a directory",
        "Name a file; a container makes a directory where the file to mount is missing",
    ),
}


class NamedFileError(ValueError):
    """A file that was named and cannot be read; the text says which, why, and what to do.

    ``what`` is the flag, setting or variable that names it; empty: who raises it further says so.
    """

    is_missing = False
    """Nothing has that name, not even a link."""

    def __init__(self, path: Path | str, what: str, why: str, next_step: str) -> None:
        super().__init__(f"cannot read {what} {str(path)!r}: {why}. {next_step}".replace("  ", " "))

    @classmethod
    def of(cls, error: OSError | ValueError, path: Path | str, what: str) -> "NamedFileError":
        """An error of the system, in words."""
        number = error.errno if isinstance(error, OSError) else None
        usual = (getattr(error, "strerror", None) or str(error), "Name a file that can be read")
        why, next_step = _REASONS.get(number or 0, usual)
        is_missing = number == errno.ENOENT and not os.path.islink(path)
        if number == errno.ENOENT and not is_missing:
            why = f"it is a link to {os.readlink(path)!r}, and there is no such file"
        found = cls(path, what, why, next_step)
        found.is_missing = is_missing
        return found


def read_text(path: Path | str, what: str = "", *, takes_pipes: bool = False) -> str:
    """Text of a file, without the byte order mark that some editors write.

    :raises NamedFileError: it cannot be read, or is not UTF-8.
    """
    return decoded(read_bytes(path, what, takes_pipes=takes_pipes), path, what)


def read_first_line(path: Path | str, what: str = "") -> str:
    """The secret that a file holds.

    :raises NamedFileError: it cannot be read, or its first line is empty.
    """
    line, *_ = read_text(path, what).splitlines() or [""]
    if not line.strip():
        raise NamedFileError(path, what, "its first line is empty", "Write the secret there")
    return line


def decoded(data: bytes, path: Path | str, what: str = "") -> str:
    """Text of a file that has been read.

    :raises NamedFileError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"byte {error.start + 1:,} is not UTF-8"
        raise NamedFileError(path, what, why, "Save it as UTF-8") from error


def read_bytes(path: Path | str, what: str = "", *, takes_pipes: bool = False) -> bytes:
    """All bytes of a file. ``takes_pipes``: it is read only once, so that a pipe or a terminal
    will do as well.

    :raises NamedFileError: it cannot be read.
    """
    descriptor = open_named(path, what, takes_pipes=takes_pipes)
    found = bytearray()
    try:
        while chunk := _chunk(descriptor):
            found += chunk
            if len(found) > BYTES_MAX:
                why = f"it is longer than {BYTES_MAX >> 20} MiB"
                raise NamedFileError(path, what, why, "Name a shorter file")
        if not found and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise NamedFileError(path, what, "nobody writes to this pipe", "Name a file")
    except OSError as error:
        raise NamedFileError.of(error, path, what) from error
    finally:
        os.close(descriptor)
    return bytes(found)


def _chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except BlockingIOError:  # somebody is about to write
        os.set_blocking(descriptor, True)
        return os.read(descriptor, _CHUNK_BYTES)


def check_readable(path: Path | str, what: str = "", *, takes_pipes: bool = False) -> None:
    """Refuse a file that is read later. A pipe that will do is left alone: its writer would notice.

    :raises NamedFileError: it cannot be read.
    """
    if not (takes_pipes and _is_pipe(path)):
        os.close(open_named(path, what, takes_pipes=takes_pipes))


def _is_pipe(path: Path | str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def open_named(path: Path | str, what: str = "", *, takes_pipes: bool = False) -> int:
    """A descriptor of the file; of a pipe, one that does not wait for a writer.

    :raises NamedFileError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise NamedFileError.of(error, path, what) from error
    try:
        _check_kind(descriptor, path, what, takes_pipes=takes_pipes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(descriptor: int, path: Path | str, what: str, *, takes_pipes: bool) -> None:
    """Regular files, the null device, and where they will do, pipes and terminals."""
    found = os.fstat(descriptor)
    is_pipe = stat.S_ISFIFO(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        raise NamedFileError(path, what, *_REASONS[errno.EISDIR])
    if stat.S_ISREG(found.st_mode) or found.st_rdev == os.stat(os.devnull).st_rdev:
        return
    if not (takes_pipes and (is_pipe or os.isatty(descriptor))):
        why = f"it is a {'pipe' if is_pipe else 'device'}"
        raise NamedFileError(path, what, why, "Name a regular file")
