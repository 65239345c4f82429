"""Open files of segments: opened when needed, bounded in number, closed when nobody reads them.

A fetch response may still be on its way out of a socket when its segment is rolled, deleted or
pushed out of the pool. The slice it holds keeps the file open; the descriptor is closed with the
last reference, so a descriptor number can never come to mean another file in between.
"""

import logging
import os
import resource
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from broker.log.errors import UnreadableFileError
from broker.log.segment.index_cache import IndexCache

OPEN_FILES_MAX: Final = 8192
_OPEN_FILES_MIN: Final = 64
_SHARE_OF_LIMIT: Final = 2
"""The pool takes at most one in so many descriptors; sockets need theirs."""
_VERIFIED_BYTES: Final = 1024 * 1024
_logger: Final = logging.getLogger(__name__)


class OpenFile:
    """A file descriptor that closes with its last reference."""

    __slots__ = ("__weakref__", "fd", "is_suspect", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.fd = -1
        self.path = path
        self.is_suspect = False
        """Whether a range of it could not be sent: the next ones are read before."""
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def read(self, size_bytes: int, position: int) -> bytes:
        """At most so many bytes from a position on.

        :raises UnreadableFileError: the disk refused.
        """
        try:
            return os.pread(self.fd, size_bytes, position)
        except OSError as error:
            raise UnreadableFileError(self.path, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """`size_bytes` of an open file from `position`; what a fetch response is made of.

    Keep the slice while `fd` is in use. A truncation can make the file shorter meanwhile: a
    sender that gets fewer bytes than promised must drop its connection.
    """

    file: OpenFile
    position: int
    size_bytes: int

    @property
    def fd(self) -> int:
        """The descriptor, valid as long as this slice lives."""
        return self.file.fd

    def read(self) -> bytes:
        """The bytes, by positional reads.

        :raises UnreadableFileError: the disk refused.
        """
        parts = []
        position, missing = self.position, self.size_bytes
        while missing and (part := self.file.read(missing, position)):
            parts.append(part)
            position += len(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def handle_unreadable(self, error: OSError) -> None:
        """Sending these bytes failed: log it, and read what is asked of this file next before it
        is promised, so that the answer can say which partition cannot be read.
        """
        if not self.file.is_suspect:
            _logger.error("%s", UnreadableFileError(self.file.path, error))
        self.file.is_suspect = True

    def verify(self) -> None:
        """Read all bytes once, piece by piece.

        :raises UnreadableFileError: the disk refused.
        """
        end = self.position + self.size_bytes
        for position in range(self.position, end, _VERIFIED_BYTES):
            self.file.read(min(_VERIFIED_BYTES, end - position), position)


class FilePool:
    """The most recently used files of all partitions, at most `open_files_max` of them, and what
    is kept in memory of a few index files.
    """

    def __init__(self, open_files_max: int = OPEN_FILES_MAX) -> None:
        self._open_files_max = open_files_max
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self.indexes = IndexCache()

    def __len__(self) -> int:
        return len(self._files)

    def open(self, path: str, flags: int = os.O_RDWR) -> OpenFile:
        """The open file of `path`.

        :raises UnreadableFileError: it cannot be opened.
        """
        found = self._files.get(path)
        if found is not None:
            self._files.move_to_end(path)
            return found
        try:
            opened = OpenFile(path, flags)
        except OSError as error:
            raise UnreadableFileError(path, error) from error
        self._files[path] = opened
        if len(self._files) > self._open_files_max:
            self._files.popitem(last=False)
        return opened

    def forget(self, path: str) -> None:
        """Called when a path is renamed or removed, or to be opened otherwise."""
        self._files.pop(path, None)
        self.indexes.forget(path)

    def clear(self) -> None:
        """Give every file back; those still being sent close when they are done."""
        self._files.clear()


def raise_open_files_limit() -> int:
    """Lift this process's soft limit to the hard one; answers a bound for its pool."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass  # Some containers forbid it: the bound below then follows the soft limit.
    if soft == resource.RLIM_INFINITY:
        return OPEN_FILES_MAX
    return max(_OPEN_FILES_MIN, min(OPEN_FILES_MAX, soft // _SHARE_OF_LIMIT))


def write_all(fd: int, buffers: list[memoryview | bytes], *, count_max: int = 1024) -> int:
    """Write every buffer to the end of `fd`; answers the bytes written.

    `count_max` is the kernel's IOV_MAX.

    :raises OSError: with part of it possibly written; the caller cuts the file back.
    """
    total = sum(len(buffer) for buffer in buffers)
    written = 0
    index = 0
    while written < total:
        step = os.writev(fd, buffers[index : index + count_max])
        written += step
        index = _skip(buffers, index, step)
    return written


def _skip(buffers: list[memoryview | bytes], index: int, step: int) -> int:
    """Advance over `step` written bytes; a half-written buffer is replaced by its rest."""
    while index < len(buffers) and step >= len(buffers[index]):
        step -= len(buffers[index])
        index += 1
    if step:
        buffers[index] = memoryview(buffers[index])[step:]
    return index
