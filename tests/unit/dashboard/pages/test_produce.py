"""The produce view tells of a send what it is: running, done, stopped, failed."""

import asyncio
from collections.abc import Iterator

import pytest

from control.kafka.connection import apis
from control.messages.produce_session import ProduceJob
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.topics.produce import Produce
from control.operations.operation_session import OperationSession
from control.operations.sends import Send
from dashboard.pages.produce import send_parts
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.unit.control.kafka.scripted_cluster import ScriptedCluster
from tests.unit.control.messages.test_sessions_of_a_cluster import (
    PRODUCE,
    TOPIC,
    Acknowledging,
    configs,
)
from tests.unit.dashboard.page_context import words_of


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={TOPIC: {0: (1,)}}) as found:
        found.on(PRODUCE, Acknowledging())
        found.on(apis.DESCRIBE_CONFIGS, configs({"max.message.bytes": "1000"}))
        yield found


def shown(send: Send | None) -> str:
    return words_of(list(send_parts(send, "dark")[:1]))


async def ended(send: Send) -> Send:
    async with asyncio.timeout(WAIT_S):
        async for _ in send.progresses():
            pass
    return send


async def test_a_send_is_told_as_what_it_is(cluster: ScriptedCluster) -> None:
    watched = WatchedCluster(bootstrap=cluster.bootstrap)
    assert "Nothing sent yet" in shown(None)
    async with OperationSession(watched, bus=None) as session:
        begin = session.sends.begin
        running = await begin(Produce(job=ProduceJob(topic=TOPIC, count=10_000, rate=100.0)))
        assert TOPIC in shown(running)
        async with asyncio.timeout(WAIT_S):
            async for progress in running.progresses():
                if progress.acked:
                    break
        assert lacking(shown(running), "sending", "of 10,000 acknowledged") == []
        assert send_parts(running, "dark")[2] is None
        running.stop()
        stopped = shown(await ended(running))
        assert lacking(stopped, "▲", "stopped", "of 10,000 acknowledged") == []
        assert "✔" not in stopped
        done = await ended(await begin(Produce(job=ProduceJob(topic=TOPIC))))
        assert "✔" in shown(done)
        assert send_parts(done, "dark")[2]["topic"] == TOPIC
        lines = ((b"k", b"v"), (b"k", b"x" * 2_000))
        refused = await ended(await begin(Produce(job=ProduceJob(topic=TOPIC, records=lines))))
        assert lacking(shown(refused), "line 2", "nothing was sent") == []
        assert "acknowledged" not in shown(refused)
