"""Lines of standard input or of a file, as they come."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from broker.named_file import NamedFileError, open_named
from control.messages.lines import LinesError, LineSplitter
from partiscope.cli.shared.exits import CommandError, Exit

CHUNK_BYTES: Final = 64 * 1024
STDIN: Final = Path("-")


def is_piped() -> bool:
    """Whether something else than a terminal is on standard input."""
    return sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty()


async def line_batches(path: Path) -> AsyncGenerator[list[bytes], None]:
    """The lines of a file, or of standard input (``-``): those that are there, then the next ones.

    Raises:
        NamedFileError: it cannot be read.
        CommandError: status 2; it has no line, or one that is too long.
    """
    name = "standard input" if path == STDIN else str(path)
    splitter, is_empty = LineSplitter(), True
    with _opened(path, name) as descriptor:
        try:
            async for chunk in _chunks(descriptor):
                is_empty = False
                if lines := splitter.feed(chunk):
                    yield lines
        except OSError as error:
            raise NamedFileError.of(error, name, "") from error
        except LinesError as error:
            raise CommandError(f"{name}: {error}", Exit.WRONG_USE) from error
    if is_empty:
        hint = " Give --value TEXT, or --count N" if path == STDIN else ""
        raise CommandError(f"{name} is empty: nothing was sent.{hint}", Exit.WRONG_USE)
    if lines := splitter.end():
        yield lines


@contextmanager
def _opened(path: Path, name: str) -> Iterator[int]:
    if path == STDIN:
        if sys.stdin is None:
            raise CommandError("standard input is closed: there is nothing to send", Exit.WRONG_USE)
        yield sys.stdin.fileno()
        return
    descriptor = open_named(path, "--file", takes_pipes=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Chunks of standard input; the event loop goes on while none is there."""
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    while True:
        if not is_file:
            await _readable(descriptor)
        if not (chunk := os.read(descriptor, CHUNK_BYTES)):
            return
        yield chunk


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    is_ready = asyncio.Event()
    try:
        # Watched for one event only: a second one would tell of bytes that are read by then.
        loop.add_reader(descriptor, is_ready.set)
    except PermissionError:  # /dev/null and its like are always ready
        return
    try:
        await is_ready.wait()
    finally:
        loop.remove_reader(descriptor)
