"""Bounds of what a request may take before anybody knows who asks: time and bytes of its head, and
bytes of its body. Without them a connection that sends a byte now and then stays for ever."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dashboard.server.origin_check import App, Message, Receive, Scope, Send

HEAD_S_MAX: Final = 10.0
HEAD_BYTES_MAX: Final = 64 << 10
BODY_BYTES_MAX: Final = 16 << 20
"""Of a plain request; a view asks by its WebSocket."""


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request does not begin, or whose head does not end, in time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first head is due."""
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts bytes of a head that has not ended."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_due is not None and self._head_bytes > HEAD_BYTES_MAX:
            self._close()

    def on_message_begin(self) -> None:
        """A further request on the connection begins."""
        super().on_message_begin()
        if self._head_due is None:
            self._begin_head()

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._end_head()
        super().on_headers_complete()

    def _begin_head(self) -> None:
        self._head_bytes = 0
        self._head_due = self.loop.call_later(HEAD_S_MAX, self._close)

    def _end_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _close(self) -> None:
        self._end_head()
        if not self.transport.is_closing():
            self.transport.abort()


class BodyBound:
    """ASGI middleware: a body past ``BODY_BYTES_MAX`` is broken off, as if its sender had gone."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if not told.isdigit() or int(told[:20]) > BODY_BYTES_MAX:
            await _refuse(send)
            return
        taken = 0

        async def receive_within() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            return message if taken <= BODY_BYTES_MAX else {"type": "http.disconnect"}

        await self._app(scope, receive_within, send)


async def _refuse(send: Send) -> None:
    body = f"413: a body has {BODY_BYTES_MAX:,} bytes at most\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
