"""A schema registry that speaks bytes as a test says: half an answer, or one that never ends."""

import socket
from threading import Event, Thread
from typing import Final, Self

from control.kafka.connection.settings import RegistrySettings

PAUSE_S: Final = 0.02
"""Between two pieces of an answer that never ends."""


class RawRegistry:
    """Use as a context manager; each connection is answered by `opening`, then by `piece` for as
    long as it lasts; without a `piece` it is closed."""

    def __init__(self, opening: bytes, piece: bytes = b"") -> None:
        self.answer, self._piece = opening, piece
        self._is_over = Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.settings = RegistrySettings(url=f"http://127.0.0.1:{self.port}")
        self.asked_count = 0
        self._threads = [Thread(target=self._serve)]

    def _serve(self) -> None:
        while True:
            connection, _ = self._server.accept()
            if self._is_over.is_set():
                connection.close()
                return
            self.asked_count += 1
            self._threads.append(Thread(target=self._answer, args=(connection,)))
            self._threads[-1].start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(1 << 16)
                connection.sendall(self.answer)
                while self._piece and not self._is_over.wait(PAUSE_S):
                    connection.sendall(self._piece)
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # the client has hung up
                return

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._threads[0].join()
        for each in self._threads[1:]:
            each.join()
        self._server.close()
