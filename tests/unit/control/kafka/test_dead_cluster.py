"""Who produces to a cluster that is down or hung is told so within three seconds."""

import time
from collections.abc import Iterator
from typing import Final

import pytest

from control.kafka.errors import UnreachableError
from control.kafka.records.producer import RecordProducer
from control.messages.produce_session import ProduceJob, ProduceSession
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.topics.delete_topic import DeleteTopic
from control.operations.catalogue.topics.produce import Produce
from control.operations.operation_session import OperationSession
from tests.support.patience import patience_s
from tests.support.silent import hung_listener, lost_listener

WITHIN_S: Final = patience_s(3.0)


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


@pytest.mark.parametrize("kind", ["hung", "lost", "refused"])
async def test_an_operation_tells_within_three_seconds(kind: str, hung: str, lost: str) -> None:
    """Its journal lies on the same brokers, and is not waited for."""
    address = {"hung": hung, "lost": lost, "refused": "127.0.0.1:1"}[kind]
    produce = Produce(job=ProduceJob(topic="orders", value="hello"))
    for asked in (produce, DeleteTopic(topic="orders", reason="")):
        began_s = time.monotonic()
        async with OperationSession(WatchedCluster(bootstrap=address), bus=address) as session:
            with pytest.raises(UnreachableError, match=address):
                await session.preview(asked)
        assert time.monotonic() - began_s < WITHIN_S


async def test_a_producer_itself_tells_within_three_seconds(hung: str) -> None:
    began_s = time.monotonic()
    with pytest.raises(UnreachableError):
        async with RecordProducer(hung):
            pass
    assert time.monotonic() - began_s < WITHIN_S
