"""Whether the disk takes writes, and what a node does while it does not.

At the first write that the disk refuses (full, read-only, broken) a small reserve is given back
to it: the metadata log and checkpoints live on that, while partitions take no more records. The
node asks to be fenced, so that others lead; it serves no stale data and holds nobody up. Once
there has been room for the reserve and a margin for some seconds, it takes its place as if nothing
had been; when the disk fills again soon, it waits for twice as long, so that a cluster whose disks
are full does not change its leaders every second.
"""

import errno
import logging
import os
from collections.abc import Callable
from typing import Final

from broker.clock import Clock
from broker.log.errors import ForceFailedError, StorageError, UnreadableFileError, storage_error

_logger: Final = logging.getLogger(__name__)
RESERVE_FILE: Final = ".reserve"
PROBE_FILE: Final = ".probe"
RESERVE_BYTES: Final = 512 * 1024
MARGIN_SHARE: Final = 0.01
"""Of the disk: so much must be free before it is written to again, within these bounds."""
MARGIN_BYTES_MIN: Final = 1024 * 1024
MARGIN_BYTES_MAX: Final = 256 * 1024 * 1024
STEADY_MS: Final = 5_000
"""For so long there must be room, twice as long after each relapse, at most STEADY_MS_MAX."""
STEADY_MS_MAX: Final = 80_000
_DISK_REFUSES: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


class DiskHealth:
    """The disk of one data directory. `refusal` is why it takes no writes now, if so.

    `failure` is final: fsync failed, and nothing of this directory can be believed before a
    restart. `on_failure` is called once with it.
    """

    def __init__(self, directory: str, clock: Clock) -> None:
        self.refusal: StorageError | None = None
        self.failure: ForceFailedError | None = None
        self.on_failure: Callable[[ForceFailedError], None] | None = None
        self._directory = directory
        self._clock = clock
        self._reserve = f"{directory}/{RESERVE_FILE}"
        self._probe = f"{directory}/{PROBE_FILE}"
        self._steady_ms = STEADY_MS
        self._room_since_ms: int | None = None
        self._well_since_ms: int | None = None
        self._settle_reserve()

    def note(self, error: StorageError) -> bool:
        """Take a failed write into account; whether it was the disk that refused it."""
        if isinstance(error, ForceFailedError):
            self._fail(error)
            return True
        cause = error.__cause__
        is_refused = isinstance(cause, OSError) and cause.errno in _DISK_REFUSES
        if isinstance(error, UnreadableFileError) and is_refused:
            # A bad spot under one file says nothing about the others.
            is_refused = isinstance(cause, OSError) and cause.errno != errno.EIO
        if is_refused and self.refusal is None:
            self.refusal = error
            self._remove(self._reserve)
            self._take_relapse_into_account()
            _logger.error(
                "the disk of %s refuses writes; this broker gives its partitions away and takes no "
                "records until %d MiB have been free for %d s: %s",
                *(self._directory, self._margin() >> 20, self._steady_ms // 1000, error),
            )
        return is_refused

    def _fail(self, error: ForceFailedError) -> None:
        if self.failure is not None:
            return
        self.refusal = self.failure = error
        _logger.critical("%s is given up: %s", self._directory, error)
        if self.on_failure is not None:
            self.on_failure(error)

    def is_well(self) -> bool:
        """Whether writes may be tried; looks again while they may not."""
        if self.refusal is None or self.failure is not None:
            return self.refusal is None
        now_ms = self._clock.monotonic_ms()
        if not self._has_room():
            self._room_since_ms = None
            return False
        if self._room_since_ms is None:
            self._room_since_ms = now_ms
        if now_ms - self._room_since_ms < self._steady_ms or not self._takes_reserve():
            return False
        self.refusal, self._room_since_ms, self._well_since_ms = None, None, now_ms
        _logger.warning("the disk of %s takes writes again", self._directory)
        return True

    def _take_relapse_into_account(self) -> None:
        """Soon after it was well again: within as long as it may have to wait."""
        now_ms, since_ms = self._clock.monotonic_ms(), self._well_since_ms
        is_relapse = since_ms is not None and now_ms - since_ms < STEADY_MS_MAX
        self._steady_ms = min(2 * self._steady_ms, STEADY_MS_MAX) if is_relapse else STEADY_MS
        self._room_since_ms = None

    def _margin(self) -> int:
        """Bytes that must be free."""
        try:
            disk = os.statvfs(self._directory)
        except OSError:
            return MARGIN_BYTES_MIN
        share = int(disk.f_blocks * disk.f_frsize * MARGIN_SHARE)
        return min(max(share, MARGIN_BYTES_MIN), MARGIN_BYTES_MAX)

    def _has_room(self) -> bool:
        """Whether the margin is there, and can be had: a quota or an error does not show before."""
        try:
            disk = os.statvfs(self._directory)
            if disk.f_bavail * disk.f_frsize < self._margin() + RESERVE_BYTES:
                return False
            self._write(self._probe, MARGIN_BYTES_MIN)
        except OSError:
            return False
        finally:
            self._remove(self._probe)
        return True

    def _takes_reserve(self) -> bool:
        try:
            self._write(self._reserve, RESERVE_BYTES)
        except OSError:
            self._remove(self._reserve)
            return False
        return True

    def _settle_reserve(self) -> None:
        try:
            self._write(self._reserve, RESERVE_BYTES)
        except OSError as error:
            self.note(storage_error(f"Writing to {self._directory} failed", error))

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
