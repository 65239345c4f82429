"""Asks the supervisor of the bundled cluster to keep a broker stopped for a while.

The supervisor listens on a socket in the data directory. It lets the other brokers lag behind for
half a second, kills the broker (SIGKILL), and starts it again when the connection ends or
`OUTAGE_S_MAX` have passed. The kernel closes the connection of a process that is killed, so a
broker is started again whatever becomes of who asked.

    asker                        supervisor
    ``stop 102\\n``          →
                             ←    ``stopped\\n``, or ``refused WHY\\n``
    ``start\\n``, or closes  →
                             ←    ``started\\n`` once the broker is ready
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

OUTAGE_S_MAX: Final = 60.0
SOCKET_FILE: Final = "outages.sock"
_READY_S: Final = 60.0
_PATH_BYTES_MAX: Final = 100

StartAgain = Callable[[], Awaitable[None]]


class OutageRefusedError(Exception):
    """The supervisor does not stop that broker; the text says why."""


@contextmanager
def short_path(socket_file: Path) -> Iterator[str]:
    """A path of the socket that fits into its address, which is short: by its folder's descriptor
    where it is too long."""
    if len(os.fsencode(socket_file)) <= _PATH_BYTES_MAX:
        yield str(socket_file)
        return
    folder = os.open(socket_file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{socket_file.name}"
    finally:
        os.close(folder)


@asynccontextmanager
async def outage(socket_file: Path, broker: int) -> AsyncIterator[StartAgain]:
    """The broker is stopped from here on, and started again at the end at the latest; the answered
    function starts it before, and returns when it is ready.

    :raises OutageRefusedError: the supervisor does not answer, or refuses.
    """
    try:
        with short_path(socket_file) as path:
            reader, writer = await asyncio.open_unix_connection(path)
    except OSError as error:
        words = f"no supervisor listens at {socket_file}: {error.strerror}"
        raise OutageRefusedError(words) from error

    async def start() -> None:
        if not writer.is_closing():
            writer.write(b"start\n")
            await _answer(reader, "started")
            writer.close()

    try:
        writer.write(f"stop {broker}\n".encode())
        await _answer(reader, "stopped")
        yield start
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _answer(reader: asyncio.StreamReader, wanted: str) -> None:
    try:
        async with asyncio.timeout(_READY_S):
            told = (await reader.readline()).decode().strip()
    except (OSError, TimeoutError) as error:
        raise OutageRefusedError(f"the supervisor did not answer: {error}") from error
    if told != wanted:
        raise OutageRefusedError(told.removeprefix("refused ") or "the supervisor has ended")
