"""The listening sockets of one endpoint: an accept loop that a full machine does not wind up.

When descriptors are used up, the loop tries once a second, and tells it in one line. Connections
are bounded so that this does not come to pass: files and the nodes of the cluster have their own
share of the descriptors.
"""

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from broker.background import Tasks, Timer, log_failure
from broker.host_name import is_host_name
from broker.log.segment.open_files import raise_open_files_limit

BACKLOG: Final = 1024
ACCEPTED_AT_ONCE_MAX: Final = 64
PAUSE_MS: Final = 1_000
KEPT_MAX: Final = 16
"""Connections beyond a quota that wait for their end; further ones end at once."""
OTHER_DESCRIPTORS: Final = 48
"""For what is neither a segment's file nor accepted: connections to other nodes, small files."""
UNBOUNDED: Final = 2**31 - 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketShares:
    """How many connections each kind of client may have, of the process's descriptors."""

    clients: int
    controller: int
    reserve: int
    """On the client listener, beyond its limit, for the brokers of the cluster."""


def socket_shares() -> SocketShares:
    """The shares that follow from RLIMIT_NOFILE, which is raised as far as it goes.

    Example: of 256 descriptors segment files take 128, other uses 48, clients 52.
    """
    files_max = raise_open_files_limit()
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return SocketShares(clients=UNBOUNDED, controller=1_000, reserve=32)
    sockets = max(24, limit - files_max - OTHER_DESCRIPTORS)
    controller = min(1_000, sockets // 4)
    reserve = min(32, sockets // 10)
    return SocketShares(
        clients=sockets - controller - reserve, controller=controller, reserve=reserve
    )


async def bind_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets bound to every address of a host, not listening yet; an empty host is any address.

    :raises OSError: the port is in use, not permitted, or not an address of this machine.
    """
    if host and not is_host_name(host):
        raise OSError(errno.EADDRNOTAVAIL, f"{host!r} is neither a host's name nor an address")
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, type_, protocol, _, address in dict.fromkeys(found):
            try:
                bound = socket.socket(family, type_, protocol)
            except OSError:
                continue  # a family that this machine does not speak
            sockets.append(bound)
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(address)
    except OSError:
        for each in sockets:
            each.close()
        raise
    if not sockets:
        raise OSError(errno.EADDRNOTAVAIL, "no address of this host can be listened on")
    return sockets


class Refusals:
    """Counts refused connections, and tells of them in one line a second."""

    def __init__(self) -> None:
        self._count = 0
        self._tell_at_ms = 0

    def note(self, limit: int, now_ms: int) -> None:
        """One more was refused at this limit."""
        self._count += 1
        if now_ms >= self._tell_at_ms:
            log.warning(
                "%d connections refused: %d are open, as many as max.connections or the limit of "
                "open files (ulimit -n) allow",
                *(self._count, limit),
            )
            self._count, self._tell_at_ms = 0, now_ms + PAUSE_MS


class Acceptor:
    """Accepts on bound sockets until it is closed.

    `admit()` judges whether one more may come; `connect` makes a connection of an accepted socket.
    `wait_ms(address)` tells for how long one beyond a quota is kept before it is closed, so that
    its client does not try again at once.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        *,
        admit: Callable[[], bool],
        connect: Callable[[socket.socket], Awaitable[object]],
        wait_ms: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self.sockets = sockets
        self._admit = admit
        self._connect = connect
        self._wait_ms = wait_ms
        self._kept = Tasks("connections beyond a quota", log_failure)
        self._arriving = Tasks("arrival of connections", log_failure)
        self._pause = Timer("accept loop", self._listen_again)

    @property
    def arriving(self) -> int:
        """Accepted sockets that are no connections yet."""
        return len(self._arriving)

    def start(self) -> None:
        """Listen, and accept."""
        for each in self.sockets:
            each.listen(BACKLOG)
        self._listen_again()

    async def close(self) -> None:
        """Accept nothing any more, and give the port back."""
        self._pause.cancel()
        for each in self.sockets:
            asyncio.get_running_loop().remove_reader(each.fileno())
            each.close()
        await self._kept.stop()

    def _listen_again(self) -> None:
        for each in self.sockets:
            asyncio.get_running_loop().add_reader(each.fileno(), self._accept, each)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            try:
                accepted, (host, *_) = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._wait(error)
                return
            wait_ms = self._wait_ms(host)
            if wait_ms:
                self._refuse_later(accepted, wait_ms)
            elif self._admit():
                accepted.setblocking(False)
                self._arriving.start(self._arrive(accepted))
            else:
                accepted.close()

    def _refuse_later(self, accepted: socket.socket, wait_ms: int) -> None:
        if len(self._kept) >= KEPT_MAX:
            accepted.close()
        else:
            self._kept.start(self._refuse(accepted, wait_ms))

    async def _refuse(self, accepted: socket.socket, wait_ms: int) -> None:
        with accepted:
            await asyncio.sleep(wait_ms / 1_000)

    async def _arrive(self, accepted: socket.socket) -> None:
        try:
            await self._connect(accepted)
        except OSError:
            accepted.close()  # it has gone again

    def _wait(self, error: OSError) -> None:
        for each in self.sockets:
            asyncio.get_running_loop().remove_reader(each.fileno())
        self._pause.set(PAUSE_MS)
        log.error(
            "no connection is accepted for a second: %s; raise the limit of open files (ulimit -n)",
            error.strerror,
        )
