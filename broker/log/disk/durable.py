"""Files that are there after a power failure. Nothing else calls fsync.

After a failed fsync Linux may drop the pages that it could not write, and the next call succeeds:
only a restart, which reads what the disk really has, can be believed. So such an error is final
for the whole log directory, as in Kafka (LogDirFailureChannel).
"""

import os
from collections.abc import Iterable

from broker.log.errors import ForceFailedError


def force(fd: int, path: str) -> None:
    """Have what was written to an open file on the disk.

    :raises ForceFailedError: it may be lost; final for the log directory.
    """
    try:
        os.fsync(fd)
    except OSError as error:
        raise ForceFailedError(path, error) from error


def force_file(path: str) -> None:
    """`force` by name, of a file or a directory.

    :raises ForceFailedError: as `force`.
    :raises OSError: it cannot be opened; nothing is lost by that.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        force(fd, path)
    finally:
        os.close(fd)


def write_new(path: str, parts: Iterable[bytes], *, is_forced: bool) -> None:
    """Write a whole file from its beginning.

    :raises OSError: it is there in part, or not at all.
    :raises ForceFailedError: as `force`.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(fd, rest) :]
        if is_forced:
            force(fd, path)
    finally:
        os.close(fd)


def rename(old: str, new: str) -> None:
    """Give a file its name. An error after which the file has it (network file systems) is none.

    :raises OSError: it has its old name.
    """
    try:
        os.replace(old, new)
    except OSError:
        if is_there(old) or not is_there(new):
            raise


def is_there(path: str) -> bool:
    """Whether there is such a file. `os.path.exists` takes any error for a no.

    :raises OSError: the disk refused to tell.
    """
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def rename_durably(old: str, new: str) -> None:
    """Give a forced file its name, and have the name on the disk.

    :raises OSError: it has its old name.
    :raises ForceFailedError: as `force`.
    """
    rename(old, new)
    force_file(os.path.dirname(new))


def replace_file(path: str, content: bytes, *, is_forced: bool) -> None:
    """Write a whole file beside `path`, then take its name: readers see the old or the new one.

    Leave `is_forced` out only where a missing, old or empty file is made anew at the next start.

    :raises OSError: the old file then still stands.
    :raises ForceFailedError: as `force`.
    """
    temporary = path + ".tmp"
    try:
        write_new(temporary, (content,), is_forced=is_forced)
        if is_forced:
            rename_durably(temporary, path)
        else:
            rename(temporary, path)
    except FileNotFoundError:
        raise  # there is no such directory any more
    except OSError:
        remove_if_there(temporary)
        raise


def remove_if_there(path: str) -> None:
    """Remove a file that nobody needs; one that the disk keeps is removed at the next start."""
    try:
        os.unlink(path)
    except OSError:
        return
