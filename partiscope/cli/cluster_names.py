"""Names of topics, brokers and groups of a cluster, for a shell that waits for them.

Two requests of Kafka's protocol by hand: a client of it takes longer to load than a key press may
last. A cluster with TLS or SASL, or one that does not answer in time, has no names here.
"""

import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from broker.host_name import bare_host

WAIT_S: Final = 0.8
"""For everything together; with the start of the process it stays below a second."""
ANSWER_BYTES_MAX: Final = 64 << 20
PORT_DIGITS_MAX: Final = 5
_METADATA, _LIST_GROUPS = 3, 16
_METADATA_V4: Final = struct.pack(">hhih", _METADATA, 4, 1, -1) + struct.pack(">ib", -1, 0)
_LIST_GROUPS_V1: Final = struct.pack(">hhih", _LIST_GROUPS, 1, 1, -1)

T = TypeVar("T")
Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Topics, internal ones too, and brokers of a cluster, by name."""

    topics: tuple[str, ...]
    brokers: dict[str, Address]


def names_of(bootstrap: str) -> Names:
    """Topics and brokers; none of a cluster that does not answer at once."""
    answers = _answers(_addresses(bootstrap), _METADATA_V4, _metadata, WAIT_S)
    return next(answers, Names(topics=(), brokers={}))


def groups_of(bootstrap: str) -> tuple[str, ...]:
    """Groups of all brokers that answer in time."""
    began_s = time.monotonic()
    brokers = list(names_of(bootstrap).brokers.values())
    left_s = began_s + WAIT_S - time.monotonic()
    answers = _answers(brokers, _LIST_GROUPS_V1, _groups, left_s)
    return tuple(name for names in answers for name in names)


def _answers(
    addresses: list[Address], request: bytes, read: Callable[["_Reader"], T], wait_s: float
) -> Iterator[T]:
    """Answers of the addresses in turn; a silent one leaves time for the others."""
    end_s = time.monotonic() + wait_s
    for at, address in enumerate(addresses):
        now_s = time.monotonic()
        try:
            until_s = now_s + (end_s - now_s) / (len(addresses) - at)
            yield read(_Reader(_asked(address, request, until_s)))
        except (OSError, ValueError, OverflowError, struct.error):
            continue


def _addresses(bootstrap: str) -> list[Address]:
    parts = (each.strip().rpartition(":") for each in bootstrap.split(","))
    return [
        (bare_host(host), int(port))
        for host, _, port in parts
        if port.isascii() and port.isdigit() and len(port) <= PORT_DIGITS_MAX
    ]


def _asked(address: Address, request: bytes, until_s: float) -> bytes:
    """The answer to a request.

    :raises OSError: there is none in time.
    """

    def left_s() -> float:
        left = until_s - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    with socket.create_connection(address, left_s()) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _received(connection, 4, left_s))
        if not 0 <= size <= ANSWER_BYTES_MAX:
            raise ValueError(size)
        return _received(connection, size, left_s)


def _received(connection: socket.socket, size: int, left_s: Callable[[], float]) -> bytes:
    read = bytearray()
    while len(read) < size:
        connection.settimeout(left_s())
        part = connection.recv(min(size - len(read), 1 << 20))
        if not part:
            raise ConnectionResetError
        read += part
    return bytes(read)


class _Reader:
    """Fields of an answer, one after the other."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._at = 4  # the correlation id

    def number(self, kind: str) -> int:
        """The next number, by its letter of ``struct``."""
        (value,) = struct.unpack_from(f">{kind}", self._answer, self._at)
        self._at += struct.calcsize(f">{kind}")
        return int(value)

    def text(self) -> str:
        """The next text; a null is empty."""
        size = max(self.number("h"), 0)
        self._at += size
        return self._answer[self._at - size : self._at].decode()

    def count(self) -> range:
        """Elements of the next array."""
        return range(self.number("i"))

    def skip_numbers(self) -> None:
        """Over an array of 32-bit numbers."""
        count = max(self.number("i"), 0)
        self._at += 4 * count


def _metadata(reader: _Reader) -> Names:
    """Reads an answer of version 4."""
    reader.number("i")  # throttled for so long
    brokers: dict[str, Address] = {}
    for _ in reader.count():
        broker, address = reader.number("i"), (reader.text(), reader.number("i"))
        reader.text()
        brokers[str(broker)] = address
    reader.text()
    reader.number("i")
    topics = []
    for _ in reader.count():
        error, name = reader.number("h"), reader.text()
        reader.number("b")
        for _ in reader.count():
            for kind in "hii":  # error, number, leader
                reader.number(kind)
            reader.skip_numbers()
            reader.skip_numbers()
        topics += [] if error else [name]
    return Names(topics=tuple(topics), brokers=brokers)


def _groups(reader: _Reader) -> list[str]:
    """Reads an answer of version 1."""
    reader.number("i")
    reader.number("h")
    return [(reader.text(), reader.text())[0] for _ in reader.count()]
