"""Free TCP ports on loopback for servers that must be told their ports before they start."""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

FIRST: Final = 12_000
COUNT: Final = 10_000
CONTROLLER_PORT_OFFSET: Final = 10_000
"""`partiscope up` puts its controllers' listeners so far above its clients'."""
IN_A_ROW_MAX: Final = 8

_claims: Final[list[int]] = []
"""A locked file for each port that this process has given; the kernel unlocks them at its end."""


def free_ports(count: int) -> list[int]:
    """That many ports, free now and given to no other test until this process ends.

    They lie below the range of outgoing connections (32768 up): a listener that is told to use
    one of those may find it taken by a client of its own neighbour. Their twins 10,000 higher
    lie there too, and are free as well.
    """
    return list(islice(_claimed_ports(), count))


def free_ports_in_a_row(count: int) -> int:
    """The first of so many neighbours, each as ``free_ports`` gives them."""
    assert count <= IN_A_ROW_MAX
    for first in _candidates():
        row = range(first, first + count)
        if all(_is_free(port) for port in row) and all(_claim(port) for port in row):
            return first
    raise AssertionError(f"no {count} free ports in a row")


def _claimed_ports() -> Iterator[int]:
    for port in _candidates():
        if _is_free(port) and _claim(port):
            yield port
    raise AssertionError("no free port is left")


def _candidates() -> Iterator[int]:
    # Of their own dice: a test run seeds the common ones alike in every process.
    yield from random.SystemRandom().sample(range(FIRST, FIRST + COUNT - IN_A_ROW_MAX), COUNT // 2)


def _is_free(port: int) -> bool:
    return _can_bind(port) and _can_bind(port + CONTROLLER_PORT_OFFSET)


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _claim(port: int) -> bool:
    """Take the port among all test runs on this machine."""
    folder = Path(tempfile.gettempdir()) / "partiscope-test-ports"
    folder.mkdir(exist_ok=True)
    claim = os.open(folder / str(port), os.O_CREAT | os.O_WRONLY)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(claim)
        return False
    _claims.append(claim)
    return True
