"""HTTP whose whole exchange ends by a deadline, for schema registries and receivers of alerts.

A time-out of a socket begins anew with each byte that comes: who drips would hold a thread.
"""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPSConnection
from threading import Timer
from typing import Final
from urllib.parse import urlsplit

from broker.host_name import is_host_name

_LEFT_S_MIN: Final = 0.001


@contextmanager
def connected_until(
    url: str, context: ssl.SSLContext | None, deadline_s: float
) -> Iterator[HTTPConnection]:
    """A connection to the host of ``url`` that is cut at ``deadline_s`` of the monotonic clock.

    ``context`` None: the machine's certificates where the address is https.

    Raises:
        OSError: there is none, or its host is no name or address.
    """
    where = urlsplit(url)
    host, is_tls = where.hostname or "", where.scheme == "https"
    context = context or (ssl.create_default_context() if is_tls else None)
    if not is_host_name(host):
        raise OSError(f"{host!r} is neither a host's name nor an address")
    connection: HTTPConnection = (
        HTTPSConnection(host, where.port, context=context)
        if is_tls
        else HTTPConnection(host, where.port)
    )
    left_s = max(_LEFT_S_MIN, deadline_s - time.monotonic())
    with socket.create_connection((host, connection.port), left_s) as plain, plain.dup() as held:
        cut = Timer(max(0.0, deadline_s - time.monotonic()), _cut, (held,))
        cut.daemon = True
        cut.start()
        try:
            connection.sock = plain
            if is_tls:
                assert context is not None
                connection.sock = context.wrap_socket(plain, server_hostname=host)
            yield connection
        finally:
            cut.cancel()
            connection.close()


def _cut(held: socket.socket) -> None:
    with suppress(OSError):  # it has ended
        held.shutdown(socket.SHUT_RDWR)
