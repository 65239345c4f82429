"""How page and exporter are served: the port, the process's end, whether they live."""

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response

from dashboard.settings import DashboardSettings

Work = Callable[[], Coroutine[Any, Any, None]]


async def nothing() -> None:
    """Stands for the start and the end of a server that needs neither."""


def register_health(server: FastAPI) -> None:
    """``/health``, on the event loop: where that is held up, nobody answers."""

    @server.get("/health", include_in_schema=False)
    async def health() -> Response:
        return PlainTextResponse("ok\n", headers={"cache-control": "no-store"})


class Server(uvicorn.Server):
    """Ends with status 0 on SIGTERM and Ctrl-C: both are how the page is meant to end."""

    def __init__(
        self, config: uvicorn.Config, *, at_start: Work = nothing, at_end: Work = nothing
    ) -> None:
        super().__init__(config)
        self._at_start = at_start
        self._at_end = at_end
        self._starting: asyncio.Future[Any] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's own, does not raise the signal again after a clean end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Also begin what is done beside the first visitors."""
        await super().startup(sockets)
        self._starting = asyncio.gather(self._at_start(), return_exceptions=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Also end what follows the moves."""
        if self._starting is not None:
            self._starting.cancel()
            with suppress(asyncio.CancelledError):
                await self._starting
        await self._at_end()
        await super().shutdown(sockets)


def listen(settings: DashboardSettings) -> socket.socket:
    """The port that the settings name, taken.

    Raises:
        OSError: somebody else has it.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener
