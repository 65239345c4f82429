"""Ports at which processes listen, as the kernel tells them, and what a stranger gets there."""

import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.support.patience import WAIT_S, patience_s

LISTENS: Final = "0A"
LOOPBACK: Final = {"0100007F", "0000000000000000FFFF00000100007F", f"{1 << 24:032X}"}
"""127.0.0.1, the same as an IPv6 address, and ::1."""
QUIET_S: Final = patience_s(1.0)
STRANGERS_CLASS: Final = b"partiscope.Stranger"


def listening_ports(pids: Iterable[int]) -> dict[int, str]:
    """Ports of these processes, each with the address that it is bound to, as /proc writes it."""
    held = {str(it) for pid in pids for it in _descriptors(pid)}
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            address, _, port = columns[1].rpartition(":")
            if columns[3] == LISTENS and f"socket:[{columns[9]}]" in held:
                found[int(port, 16)] = address
    return found


def spark_call() -> bytes:
    """A call of Spark's RPC protocol that carries a serialized object of a class that is ours."""
    body = b"".join(
        (
            b"\x00",  # no sender
            b"\x01" + _text(b"127.0.0.1") + struct.pack(">I", 1),
            _text(b"HeartbeatReceiver"),
            b"\xac\xed\x00\x05sr" + _text(STRANGERS_CLASS),
            bytes(8) + b"\x02" + bytes(2) + b"xp",
        )
    )
    message = struct.pack(">BQI", 3, 7, len(body)) + body
    return struct.pack(">Q", 8 + len(message)) + message


def answer(port: int, request: bytes) -> bytes:
    """What comes back until the other side closes, or says nothing for a second."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as stranger:
        stranger.settimeout(QUIET_S)
        try:
            stranger.sendall(request)
            while part := stranger.recv(65_536):
                got += part
        except OSError:
            pass
    return got


def _text(value: bytes) -> bytes:
    return struct.pack(">H", len(value)) + value


def _descriptors(pid: int) -> list[Path]:
    try:
        numbers = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []
    return [target for it in numbers if (target := _target(it)) is not None]


def _target(descriptor: Path) -> Path | None:
    """None for one that is closed meanwhile."""
    try:
        return descriptor.readlink()
    except OSError:
        return None
