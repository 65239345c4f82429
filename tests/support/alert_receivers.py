"""Receivers of alerts for tests: a real HTTP server and a real mail server, which may refuse."""

import json
import threading
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.support.ports import free_ports


class WebhookServer:
    """Takes JSON by POST; a context manager."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        """Documents in order, those that were refused left out."""
        self.headers: list[dict[str, str]] = []
        self.refuses_with = 0
        """A status; 0: everything is taken."""
        self.before_answer: Callable[[], None] = lambda: None
        """Called once a document is taken, before its sender knows."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if outer.refuses_with:
                    self.send_error(outer.refuses_with, "not now")
                    return
                outer.taken.append(json.loads(body))
                outer.headers.append(dict(self.headers.items()))
                outer.before_answer()
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook/s3cret"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class MailServer:
    """Takes mail by SMTP; a context manager."""

    def __init__(self) -> None:
        self.taken: list[Message] = []
        self.refuses_with = ""
        """An answer such as ``451 later``; empty: everything is taken."""
        (self.port,) = free_ports(1)
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    async def handle_DATA(self, _: SMTP, __: Session, envelope: Envelope) -> str:
        """As the library calls it for each mail."""
        if self.refuses_with:
            return self.refuses_with
        assert isinstance(envelope.content, bytes)
        self.taken.append(message_from_bytes(envelope.content))
        return "250 taken"

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._controller.stop()
