"""Names what is forced to the disk in the thread of an event loop, where everybody waits for it."""

import asyncio
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

WHILE_NOBODY_IS_SERVED: Final = frozenset(
    {"_settle_identity", "take_clean_shutdown", "_build_quorum", "shutdown"}
)
"""Functions that write the files of a node which starts or stops."""


@contextmanager
def nothing_forced_on_the_loop() -> Iterator[list[str]]:
    """Fail in the end if an event loop waited for fsync; answers what other threads forced."""
    elsewhere, on_the_loop = list[str](), list[str]()
    real = os.fsync

    def fsync(fd: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{fd}")).name
        functions = [frame.name for frame in traceback.extract_stack()]
        if asyncio._get_running_loop() is None:
            elsewhere.append(name)
        elif WHILE_NOBODY_IS_SERVED.isdisjoint(functions):
            on_the_loop.append(f"{name} by {' > '.join(functions[-8:])}")
        real(fd)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield elsewhere
    assert not on_the_loop, "\n".join(on_the_loop)
