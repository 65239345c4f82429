"""A schema registry that answers what a test says: schemas, refusals, nonsense."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Final, Self

from control.kafka.connection.settings import RegistrySettings

HANGS: Final = 0
"""In the place of an HTTP status: no answer comes."""


class RegistryOfTexts:
    """Use as a context manager; `schemas` by id: kind and text, an HTTP status, or a body."""

    def __init__(self, schemas: Mapping[int, tuple[str, str] | int | bytes]) -> None:
        self.asked: list[str] = []
        self.hangs = Event()
        """While it is set, no question is answered."""
        self._is_over = Event()
        asked, hangs, is_over = self.asked, self.hangs, self._is_over

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                last = self.path.rpartition("/")[2]
                found = schemas.get(int(last), 404) if last.isdecimal() else 404
                if found == HANGS or hangs.is_set():
                    is_over.wait()
                    return
                body = found if isinstance(found, bytes) else b'{"error_code": 40403}'
                if isinstance(found, tuple):
                    body = json.dumps({"schemaType": found[0], "schema": found[1]}).encode()
                self.send_response(found if isinstance(found, int) else 200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.settings = RegistrySettings(url=self.url)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
