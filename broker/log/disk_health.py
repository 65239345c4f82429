"""Whether the disk takes writes, and what a node does while it does not.

At the first write that the disk refuses (full, read-only, broken) a small reserve is given back
to it: the metadata log and checkpoints live on that, while partitions take no more records. The
node asks to be fenced, so that others lead; it serves no stale data and holds nobody up. Once a
megabyte and the reserve can be written again, it takes its place as if nothing had been.
"""

import errno
import logging
import os
from typing import Final

from broker.log.errors import StorageError, storage_error

_logger: Final = logging.getLogger(__name__)
RESERVE_FILE: Final = ".reserve"
PROBE_FILE: Final = ".probe"
RESERVE_BYTES: Final = 512 * 1024
PROBE_BYTES: Final = 1024 * 1024
_DISK_REFUSES: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


class DiskHealth:
    """The disk of one data directory. `refusal` is why it takes no writes now, if so."""

    def __init__(self, directory: str) -> None:
        self.refusal: StorageError | None = None
        self._directory = directory
        self._reserve = f"{directory}/{RESERVE_FILE}"
        self._probe = f"{directory}/{PROBE_FILE}"
        self._settle_reserve()

    def note(self, error: StorageError) -> bool:
        """Take a failed write into account; whether it was the disk that refused it."""
        cause = error.__cause__
        is_refused = isinstance(cause, OSError) and cause.errno in _DISK_REFUSES
        if is_refused and self.refusal is None:
            self.refusal = error
            self._remove(self._reserve)
            _logger.error(
                "the disk of %s refuses writes; this broker gives its partitions away and takes no "
                "records until there is room: %s",
                *(self._directory, error),
            )
        return is_refused

    def is_well(self) -> bool:
        """Whether writes may be tried; looks again while they may not."""
        if self.refusal is not None:
            try:
                self._write(self._probe, PROBE_BYTES)
                self._remove(self._probe)
                self._write(self._reserve, RESERVE_BYTES)
            except OSError:
                self._remove(self._probe)
                self._remove(self._reserve)
                return False
            self.refusal = None
            _logger.warning("the disk of %s takes writes again", self._directory)
        return True

    def _settle_reserve(self) -> None:
        try:
            self._write(self._reserve, RESERVE_BYTES)
        except OSError as error:
            self.note(_refused(self._directory, error))

    @staticmethod
    def _write(path: str, size_bytes: int) -> None:
        """Have the blocks of a file, not just its length.

        :raises OSError: there is no room for them.
        """
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(fd, 0, size_bytes)
        finally:
            os.close(fd)

    @staticmethod
    def _remove(path: str) -> None:
        try:
            os.unlink(path)
        except OSError as error:
            if error.errno != errno.ENOENT:
                _logger.warning("removing %s failed: %s", path, error.strerror)


def _refused(directory: str, error: OSError) -> StorageError:
    story = storage_error(f"Writing to {directory} failed", error)
    story.__cause__ = error
    return story
