"""A proxy that dies, or falls silent, when a test says so."""

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from tests.support.ports import free_ports

_CHUNK_BYTES: Final = 65_536
_LOOK_S: Final = 0.05


class CutProxy:
    """Forwards a loopback port to another; a context manager."""

    def __init__(self, target: int) -> None:
        (self.port,) = free_ports(1)
        self._target = target
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._is_silent = False

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()

    def begin(self) -> None:
        """Forward, again after ``cut`` or ``fall_silent``."""
        self._is_silent = False
        if self._listener is not None:
            return
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def fall_silent(self) -> None:
        """Keep every connection and let nothing pass."""
        self._is_silent = True

    def cut(self) -> None:
        """Close every connection and take no more."""
        if self._listener is not None:
            # Whoever waits in `accept` is not woken by `close` alone.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for each in list(self._open):
            self._end(each)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for source, target in ((near, far), (far, near)):
                args = (source, target)
                threading.Thread(target=self._forward, args=args, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while chunk := source.recv(_CHUNK_BYTES):
                while self._is_silent:
                    time.sleep(_LOOK_S)
                target.sendall(chunk)
        except OSError:
            pass
        finally:
            self._end(source)
            self._end(target)

    def _end(self, each: socket.socket) -> None:
        self._open.discard(each)
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
