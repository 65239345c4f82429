"""Who produces to a cluster that is down or hung is told so within three seconds."""

import time
from collections.abc import Iterator
from typing import Final

import pytest

from control.kafka.errors import UnreachableError
from control.kafka.producer import RecordProducer
from control.lab.session import ProduceJob, ProduceSession
from tests.support.silent import hung_listener, lost_listener

WITHIN_S: Final = 3.0


@pytest.fixture
def hung() -> Iterator[str]:
    with hung_listener() as address:
        yield address


@pytest.fixture
def lost() -> Iterator[str]:
    with lost_listener() as address:
        yield address


@pytest.mark.parametrize("kind", ["hung", "lost", "refused", "unknown"])
async def test_produce_tells_within_three_seconds(kind: str, hung: str, lost: str) -> None:
    address = {"hung": hung, "lost": lost, "refused": "127.0.0.1:1", "unknown": "nowhere.test:1"}
    session = ProduceSession(address[kind], ProduceJob(topic="orders", value="hello"))
    began_s = time.monotonic()
    with pytest.raises(UnreachableError) as told:
        await session.run_to_end()
    assert time.monotonic() - began_s < WITHIN_S
    assert address[kind] in str(told.value)
    assert told.value.next_step


async def test_a_producer_itself_tells_within_three_seconds(hung: str) -> None:
    began_s = time.monotonic()
    with pytest.raises(UnreachableError):
        async with RecordProducer(hung):
            pass
    assert time.monotonic() - began_s < WITHIN_S
