"""Lines of standard input or of a file, as they come."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from broker.named_file import NamedFileError, open_named
from control.messages.lines import LinesError, LineSplitter
from partiscope.cli.shared.exits import CommandError, Exit

CHUNK_BYTES: Final = 64 * 1024
_INSTEAD: Final = "Give --value TEXT, or --count N"


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file, or of standard input (no ``path``)."""

    name: str
    path: Path | None = None
    start: int = 0
    """Standard input that is a file begins there; others may have read it before."""

    @classmethod
    def of_standard_input(cls) -> Self:
        """From where it is now.

        Raises:
            CommandError: status 2; it is closed.
        """
        if sys.stdin is None or sys.stdin.closed:
            message = f"standard input is closed: there is nothing to send. {_INSTEAD}"
            raise CommandError(message, Exit.WRONG_USE)
        found = cls("standard input")
        start = os.lseek(sys.stdin.fileno(), 0, os.SEEK_CUR) if found.is_file else 0
        return cls(found.name, start=start)

    @property
    def is_file(self) -> bool:
        """It can be read more than once."""
        if self.path is not None:
            return self.path.is_file()
        return stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)

    async def batches(self) -> AsyncGenerator[list[bytes], None]:
        """Those that are there, then the next ones.

        Raises:
            NamedFileError: it cannot be read.
            CommandError: status 2; it has no line, or one that is too long.
        """
        splitter, is_empty = LineSplitter(), True
        with self._opened() as descriptor:
            try:
                async for chunk in _chunks(descriptor):
                    is_empty = False
                    if lines := splitter.feed(chunk):
                        yield lines
            except OSError as error:
                raise NamedFileError.of(error, self.name, "") from error
            except LinesError as error:
                raise CommandError(f"{self.name}: {error}", Exit.WRONG_USE) from error
        if is_empty:
            hint = f" {_INSTEAD}" if self.path is None else ""
            message = f"{self.name} is empty: nothing was sent.{hint}"
            raise CommandError(message, Exit.WRONG_USE)
        if lines := splitter.end():
            yield lines

    @contextmanager
    def _opened(self) -> Iterator[int]:
        if self.path is None:
            descriptor = sys.stdin.fileno()
            if self.is_file:
                os.lseek(descriptor, self.start, os.SEEK_SET)
            yield descriptor
            return
        descriptor = open_named(self.path, "--file", takes_pipes=True)
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
