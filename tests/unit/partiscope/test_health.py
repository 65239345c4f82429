"""Health checks of containers: a part that takes connections and says nothing is not well."""

import socket
from collections.abc import Iterator

import pytest

from partiscope import health
from partiscope.health import broker_answers, main
from tests.support.ports import free_ports


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections, as that of a process that hangs."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_broker_that_hangs_is_not_well(silent: int) -> None:
    assert not await broker_answers("127.0.0.1", silent, timeout_s=0.2)


@pytest.mark.parametrize("part", ["broker", "page"])
def test_nobody_there_is_not_well(part: str) -> None:
    (port,) = free_ports(1)
    assert main(part, f"127.0.0.1:{port}") == 1


def test_the_request_is_of_the_length_that_it_tells() -> None:
    size = int.from_bytes(health._API_VERSIONS[:4])
    assert size == len(health._API_VERSIONS) - 4
