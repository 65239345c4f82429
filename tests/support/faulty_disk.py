"""A disk whose calls fail on purpose: the n-th one, or all of a kind, below one directory.

    with FaultyDisk(directory, errno.EIO, first=7, times=1) as disk:
        ...
    assert disk.met  # there were so many calls

What the code under test calls in ``os`` goes through here; other paths are let through. A write
that fails may have written its first half; a rename that fails may have been done.
"""

import builtins
import os
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from unittest.mock import patch

BY_PATH: Final = ("open", "rename", "replace", "unlink", "rmdir", "listdir", "mkdir", "stat")
BY_FD: Final = ("pread", "pwrite", "write", "writev", "ftruncate", "fsync", "posix_fallocate")
BY_PATH_TOO: Final = ("truncate", "utime")
SENDING: Final = ("sendfile",)
ALL: Final = frozenset((*BY_PATH, *BY_FD, *BY_PATH_TOO))
ALWAYS: Final = 1 << 60


class FaultyDisk:
    """Calls ``first`` to ``first + times - 1`` of those in ``calls`` fail; counting begins at 0.

    ``is_torn``: a failing write writes half of its bytes first, a failing rename is done.
    """

    def __init__(
        self,
        directory: Path | str,
        code: int,
        *,
        first: int = 0,
        times: int = ALWAYS,
        calls: Collection[str] = ALL,
        is_torn: bool = False,
    ) -> None:
        self._directory = os.path.realpath(directory)
        self._code = code
        self._failing = range(first, first + times)
        self._calls = calls
        self._is_torn = is_torn
        self._patches: list[Any] = []
        self._lock = threading.Lock()
        self.count = 0
        self.story: list[str] = []
        """The calls that failed."""

    @property
    def met(self) -> bool:
        """Whether any call failed."""
        return bool(self.story)

    def __enter__(self) -> Self:
        for name in (*BY_PATH, *BY_FD, *BY_PATH_TOO, *SENDING):
            self._patches.append(patch.object(os, name, self._wrapped(name, getattr(os, name))))
        self._patches.append(patch.object(builtins, "open", self._wrapped("open", open)))
        for each in self._patches:
            each.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in reversed(self._patches):
            each.stop()
        self._patches.clear()

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(target: Any = ".", *args: Any, **kwargs: Any) -> Any:
            file = args[0] if name in SENDING else target
            if name not in self._calls or not self._is_ours(file):
                return real(target, *args, **kwargs)
            if not self._is_due(name, file):
                return real(target, *args, **kwargs)
            if self._is_torn:
                self._do_half(name, real, target, args)
            raise OSError(self._code, os.strerror(self._code), str(file))

        return call

    def _is_due(self, name: str, target: Any) -> bool:
        with self._lock:
            number, self.count = self.count, self.count + 1
            if number not in self._failing:
                return False
            self.story.append(f"{number}: {name} {self._path(target)}")
            return True

    def _is_ours(self, target: Any) -> bool:
        return (self._path(target) + "/").startswith(self._directory + "/")

    @staticmethod
    def _path(target: Any) -> str:
        if isinstance(target, int):
            try:
                return os.readlink(f"/proc/self/fd/{target}")
            except OSError:
                return ""
        return os.path.abspath(str(os.fspath(target)))

    def _do_half(
        self, name: str, real: Callable[..., Any], target: Any, args: tuple[Any, ...]
    ) -> None:
        if name in ("rename", "replace"):
            real(target, *args)
        elif name in ("write", "pwrite"):
            data = memoryview(args[0]).cast("B")
            real(target, data[: len(data) // 2], *args[1:])
        elif name == "writev":
            whole = b"".join(args[0])
            os.write(target, whole[: len(whole) // 2])
