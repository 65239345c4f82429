"""Asks the supervisor of the bundled cluster to stop a broker: for a while, or for good.

The supervisor listens on a socket in the data directory. For a while, it lets the other brokers
lag behind for half a second, kills the broker (SIGKILL), and starts it again when the connection
ends or `OUTAGE_S_MAX` have passed. The kernel closes the connection of a process that is killed, so
a broker is started again whatever becomes of who asked.

    asker                        supervisor
    ``stop 102\\n``          →
                             ←    ``stopped\\n``, or ``refused WHY\\n``
    ``start\\n``, or closes  →
                             ←    ``started\\n`` once the broker is ready

    ``runs 104\\n``          →
                             ←    ``runs\\n``, or ``refused WHY\\n``
    ``retire 104\\n``        →    writes down that no later start begins it; SIGTERM
                             ←    ``retired\\n``, or ``refused WHY\\n``
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
    reader, writer = await _connect(socket_file)

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


async def why_not_run_by(socket_file: Path, broker: int) -> str:
    """Why the supervisor cannot stop the broker; empty: it runs it."""
    try:
        await _ask(socket_file, f"runs {broker}", "runs")
    except OutageRefusedError as error:
        return str(error)
    return ""


async def retire(socket_file: Path, broker: int) -> None:
    """Stop the broker for good: neither the supervisor nor a later start begins it again.

    :raises OutageRefusedError: the supervisor does not answer, or refuses.
    """
    await _ask(socket_file, f"retire {broker}", "retired")


async def _ask(socket_file: Path, line: str, wanted: str) -> None:
    reader, writer = await _connect(socket_file)
    try:
        writer.write(f"{line}\n".encode())
        await _answer(reader, wanted)
    finally:
        writer.close()


async def _connect(socket_file: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        with short_path(socket_file) as path:
            return await asyncio.open_unix_connection(path)
    except OSError as error:
        words = f"no supervisor listens at {socket_file}: {error.strerror}"
        raise OutageRefusedError(words) from error


async def _answer(reader: asyncio.StreamReader, wanted: str) -> None:
    try:
        async with asyncio.timeout(_READY_S):
            told = (await reader.readline()).decode().strip()
    except (OSError, TimeoutError) as error:
        raise OutageRefusedError(f"the supervisor did not answer: {error}") from error
    if told != wanted:
        raise OutageRefusedError(told.removeprefix("refused ") or "the supervisor has ended")
