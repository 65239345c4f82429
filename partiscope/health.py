"""Asks a part whether it answers: a process that hangs is alive, and serves nobody.

``up`` asks the page. Health checks of containers and pods ask page and brokers:
``python -m partiscope.health page HOST:PORT``, or ``broker HOST:PORT``; status 1 without an answer.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from broker.host_name import address_text, bare_host

HEALTH_PATH: Final = "/health"
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # asked, not bound
_ANSWER_BYTES_MAX: Final = 4096
_API_VERSIONS: Final = bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"ping"
"""Size, API key, version, correlation id, client id: what every Kafka client asks first."""
_SIZE_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Where a part answers, how often it is asked, and how many answers may be missing in a row."""

    host: str
    port: int
    every_s: float = 5.0
    timeout_s: float = 5.0
    misses_max: int = 6
    is_tls: bool = False

    @property
    def url(self) -> str:
        """The address that is asked."""
        scheme = "https" if self.is_tls else "http"
        return f"{scheme}://{address_text(self._asked_host, self.port)}{HEALTH_PATH}"

    async def lost(self) -> None:
        """Return when so many answers in a row are missing."""
        misses = 0
        while misses < self.misses_max:
            await asyncio.sleep(self.every_s)
            misses = 0 if await self.answers() else misses + 1

    async def answers(self) -> bool:
        """Whether it says that it is well, in time."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self.timeout_s):
                return await self._status() == b"200"
        return False

    async def _status(self) -> bytes:
        host = address_text(self._asked_host, self.port)
        tls = _any_certificate() if self.is_tls else None
        reader, writer = await asyncio.open_connection(self._asked_host, self.port, ssl=tls)
        try:
            writer.write(f"GET {HEALTH_PATH} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            return (await reader.read(_ANSWER_BYTES_MAX))[9:12]
        finally:
            writer.transport.abort()

    @property
    def _asked_host(self) -> str:
        return _EVERYWHERE.get(self.host, self.host)


def _any_certificate() -> ssl.SSLContext:
    """TLS that trusts whoever answers: a health check tells and learns nothing secret."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def broker_answers(host: str, port: int, timeout_s: float = 5.0) -> bool:
    """Whether a broker answers on that listener in time; it needs no login for that."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_API_VERSIONS)
                return len(await reader.readexactly(_SIZE_BYTES)) == _SIZE_BYTES
            finally:
                writer.transport.abort()
    return False


async def _page_answers(host: str, port: int) -> bool:
    """Whether a page answers, by TLS or without."""
    ways = (Health(host=host, port=port, is_tls=is_tls) for is_tls in (False, True))
    return any([await way.answers() for way in ways])


def main(part: str, address: str) -> int:
    """Ask a ``page`` or a ``broker`` once; the exit status."""
    host, _, port = address.rpartition(":")
    if part == "broker":
        asked = broker_answers(bare_host(host), int(port))
    else:
        asked = _page_answers(bare_host(host), int(port))
    return 0 if asyncio.run(asked) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
