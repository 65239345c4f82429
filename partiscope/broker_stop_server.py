"""Stops a broker for who asks on a socket of the data directory: for a while, or for good.

The other side, and what they say, is control/operations/broker_stop_client.py.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from control.operations.broker_stop_client import OUTAGE_S_MAX, SOCKET_FILE, short_path
from partiscope.bundled.founded_cluster import LayoutError, write_drained
from partiscope.processes import broker_name
from partiscope.supervisor import Child, PartFailedError, Supervisor

FROZEN_S: Final = 0.5
GO_ON_AFTER_S: Final = 3
RETIRE_GRACE_S: Final = 30.0


@asynccontextmanager
async def serving_outages(
    supervisor: Supervisor, data: Path, *, teaches: bool
) -> AsyncIterator[None]:
    """Listens while the installation runs; only its own user may connect.

    ``teaches``: the cluster may be disturbed to learn on it.
    """
    server = _OutageServer(supervisor, data, teaches=teaches)
    socket_file = data / SOCKET_FILE
    socket_file.unlink(missing_ok=True)
    with short_path(socket_file) as path:
        mask = os.umask(0o177)
        try:
            listening = await asyncio.start_unix_server(server.answer, path)
        finally:
            os.umask(mask)
    try:
        yield
    finally:
        listening.close()
        socket_file.unlink(missing_ok=True)


class _OutageServer:
    """One outage at a time: a second broker could take the majority of the metadata quorum."""

    def __init__(self, supervisor: Supervisor, data: Path, *, teaches: bool) -> None:
        self._supervisor = supervisor
        self._data = data
        self._teaches = teaches
        self._busy = asyncio.Lock()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        try:
            refusal = await self._done(reader, writer)
            if refusal:
                await _say(writer, f"refused {refusal}")
        finally:
            writer.close()

    async def _done(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Why it is refused; empty: it was done."""
        act, _, broker = (await reader.readline()).decode(errors="replace").strip().partition(" ")
        child = self._supervisor.children.get(broker_name(broker))
        if child is None:
            return f"this installation runs no broker {broker}"
        match act:
            case "stop":
                return await self._stop_and_start(child, broker, reader, writer)
            case "runs":
                await _say(writer, "runs")
                return ""
            case "retire":
                return await self._retire(child, broker, writer)
            case _:
                return f"nothing is known that is called {act!r}"

    async def _retire(self, child: Child, broker: str, writer: asyncio.StreamWriter) -> str:
        if self._busy.locked():
            return "another broker is stopped just now: try again when it runs"
        async with self._busy:
            try:
                write_drained(self._data, int(broker))
            except (LayoutError, OSError) as error:
                return f"it would be started again: {error}"
            await child.retire(RETIRE_GRACE_S)
            del self._supervisor.children[broker_name(broker)]
        await _say(writer, "retired")
        return ""

    async def _stop_and_start(
        self, child: Child, broker: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str:
        if not self._teaches:
            return "this cluster is in production"
        if child.pid is None:
            return f"broker {broker} is down already"
        others = self._running_beside(child)
        if not others:
            return "no other broker runs"
        if self._busy.locked():
            return "another broker is stopped just now: try again when it runs"
        async with self._busy:
            async with AsyncExitStack() as stopped:
                async with _frozen(others):
                    await stopped.enter_async_context(child.held())
                await _say(writer, "stopped")
                with suppress(TimeoutError):
                    async with asyncio.timeout(OUTAGE_S_MAX):
                        await reader.readline()
            try:
                await child.wait_ready()
            except PartFailedError as error:
                return str(error)
            await _say(writer, "started")
        return ""

    def _running_beside(self, child: Child) -> list[Child]:
        brokers = broker_name("")
        return [
            other
            for name, other in self._supervisor.children.items()
            if name.startswith(brokers) and other is not child and other.pid is not None
        ]


@asynccontextmanager
async def _frozen(children: Sequence[Child]) -> AsyncIterator[None]:
    """They lag behind for ``FROZEN_S`` before the body, so that what the broker acknowledges alone
    is lost with it. A process apart lets them go on even if the supervisor is killed meanwhile."""
    groups = [child.pid for child in children if child.pid is not None]
    go_on = f"sleep {GO_ON_AFTER_S}; kill -CONT {' '.join(f'-{group}' for group in groups)}"
    rescuer = await asyncio.create_subprocess_exec("sh", "-c", go_on, start_new_session=True)
    try:
        _signal(groups, signal.SIGSTOP)
        await asyncio.sleep(FROZEN_S)
        yield
    finally:
        _signal(groups, signal.SIGCONT)
        rescuer.kill()
        await rescuer.wait()


def _signal(groups: Sequence[int], signum: signal.Signals) -> None:
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signum)


async def _say(writer: asyncio.StreamWriter, line: str) -> None:
    with suppress(OSError):
        writer.write(f"{line}\n".encode())
        await writer.drain()
