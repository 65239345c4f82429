"""Single requests to single brokers, ours or Kafka's, each over a connection of its own."""

import socket
import struct
from collections.abc import Callable
from typing import Any, Final

from broker.protocol import codec
from tests.support.patience import patience_s
from tests.support.settle import wait_until

METADATA: Final = (3, 9)
TIMEOUT_S: Final = patience_s(30.0)
Judge = Callable[[Any], bool]
"""Of a topic in a Metadata response, or None where it is not known."""


def ask(address: str, api_key: int, version: int, message: Any) -> Any:
    """One request to ``host:port``; the decoded response."""
    host, _, port = address.rpartition(":")
    request = codec.encode_request(message, correlation_id=1, client_id="tests")
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as sock:
        sock.sendall(request)
        (size,) = struct.unpack(">i", _read(sock, 4))
        return codec.decode_response(api_key, version, _read(sock, size))[1]


def metadata(address: str) -> Any:
    """What one broker knows of the cluster and of all topics."""
    return ask(address, *METADATA, codec.build_request(*METADATA, topics=None))


def topic_at(address: str, name: str) -> Any:
    """A topic as one broker knows it; None if it does not."""
    return next((topic for topic in metadata(address).topics if topic.name == name), None)


def wait_everywhere(bootstrap: str, topic: str, is_so: Judge, what: str) -> None:
    """Until every broker sees it so: a change is committed before all have heard of it."""
    for address in bootstrap.split(","):
        wait_until(lambda at=address: is_so(topic_at(at, topic)), f"{topic} {what} at {address}")  # type: ignore[misc]


def wait_for_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Until every broker knows the topic with so many partitions, all of them led."""

    def is_led(found: Any) -> bool:
        leaders = [] if found is None else [p.leader_id for p in found.partitions]
        return len(leaders) == partitions and min(leaders) >= 0

    wait_everywhere(bootstrap, topic, is_led, f"has {partitions} partitions")


def _read(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return data
