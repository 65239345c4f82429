"""Sends of a session go on by themselves; they are found by topic, and stopped from anywhere."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from control.kafka.connection import apis
from control.messages.produce_session import ProduceJob
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.topics.produce import Produce
from control.operations.errors import NotConfirmedError, SendRunsError
from control.operations.operation_session import OperationSession
from control.operations.sends import Send, Sends
from control.views.messages.progress import last_words, progress_cells
from control.views.tables.rows import Tone
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.unit.control.kafka.scripted_cluster import ScriptedCluster
from tests.unit.control.messages.test_sessions_of_a_cluster import (
    PRODUCE,
    TOPIC,
    Acknowledging,
    configs,
)

OTHER = "payments"
ENDLESS = 1_000_000
KEPT_MAX = 3


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    topics = {f"t-{n}": {0: (1,)} for n in range(KEPT_MAX + 1)}
    with ScriptedCluster(topics={TOPIC: {0: (1,)}, OTHER: {0: (1,)}, **topics}) as found:
        found.on(PRODUCE, Acknowledging())
        found.on(apis.DESCRIBE_CONFIGS, configs({"max.message.bytes": "1000"}))
        yield found


@pytest.fixture
async def sends(cluster: ScriptedCluster) -> AsyncIterator[Sends]:
    watched = WatchedCluster(bootstrap=cluster.bootstrap)
    async with OperationSession(watched, bus=None) as session:
        yield session.sends


def asked(topic: str = TOPIC, *, count: int = ENDLESS, value: str = "v") -> Produce:
    return Produce(job=ProduceJob(topic=topic, value=value, count=count, rate=100.0))


async def until_acked(send: Send) -> int:
    async with asyncio.timeout(WAIT_S):
        async for progress in send.progresses():
            if progress.acked:
                break
    assert progress.acked
    return progress.acked


async def ended(send: Send) -> Send:
    async with asyncio.timeout(WAIT_S):
        async for _ in send.progresses():
            pass
    assert not send.is_running
    return send


async def test_a_send_goes_on_until_it_is_stopped_by_whoever_finds_it(sends: Sends) -> None:
    begun = await sends.begin(asked())
    await until_acked(begun)
    found = sends.of(TOPIC)
    assert found is begun
    assert sends.running() == (begun,)
    (running, *_) = progress_cells(begun.progress, "all") if begun.progress else ()
    assert lacking(running.text, "sending", "of 1,000,000 acknowledged") == []
    with pytest.raises(SendRunsError, match=TOPIC):
        await sends.begin(asked())
    other = await sends.begin(asked(OTHER))
    found.stop()
    await ended(begun)
    assert begun.progress is not None
    assert begun.progress.acked == begun.progress.sent > 0
    (stopped, *_) = progress_cells(begun.progress, "all")
    assert (stopped.tone, stopped.text.split(":")[0]) == (Tone.WARNING, "stopped")
    assert lacking(last_words(begun), TOPIC, "stopped", "of 1,000,000") == []
    assert lacking(begun.asked.shortfall, "stopped", "of 1,000,000 records") == []
    assert sends.running() == (other,)
    again = await ended(await sends.begin(asked(count=2)))
    assert sends.of(TOPIC) is again
    assert again.progress is not None
    (fine, *_) = progress_cells(again.progress, "all")
    assert (fine.tone, again.progress.is_stopped) == (Tone.FINE, False)
    assert again.asked.shortfall == ""
    frozen = again.progress.elapsed_s
    assert again.progress.elapsed_s == frozen


async def test_why_a_send_ended_stays_with_it(sends: Sends, cluster: ScriptedCluster) -> None:
    nowhere = await ended(await sends.begin(asked("nowhere")))
    assert "nowhere" in str(nowhere.error)
    assert "nowhere" in last_words(nowhere)
    cluster.on(PRODUCE, Acknowledging(p0=29))
    refused = await ended(await sends.begin(asked(count=2)))
    assert refused.error is None
    assert refused.progress is not None
    assert (refused.progress.failed, refused.progress.acked) == (2, 0)
    assert lacking(refused.asked.shortfall, "0 of 2 records", "TOPIC_AUTHORIZATION_FAILED") == []


async def test_a_session_that_ends_stops_its_sends_and_awaits_their_answers(
    cluster: ScriptedCluster,
) -> None:
    watched = WatchedCluster(bootstrap=cluster.bootstrap, name="prod", is_production=True)
    async with OperationSession(watched, bus=None) as session:
        with pytest.raises(NotConfirmedError):
            await session.sends.begin(asked())
        assert session.sends.of(TOPIC) is None
        begun = await session.sends.begin(asked(), typed="prod")
        await until_acked(begun)
    assert not begun.is_running
    assert begun.progress is not None
    assert begun.progress.unanswered == 0


async def test_only_so_many_run_and_the_oldest_result_is_forgotten_first(
    sends: Sends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.operations.sends.KEPT_MAX", KEPT_MAX)
    for n in range(KEPT_MAX - 1):
        await sends.begin(asked(f"t-{n}"))
    first = await ended(await sends.begin(asked(OTHER, count=1)))
    assert sends.of(OTHER) is first
    await sends.begin(asked(f"t-{KEPT_MAX - 1}"))
    assert sends.of(OTHER) is None
    with pytest.raises(SendRunsError, match=str(KEPT_MAX)):
        await sends.begin(asked(f"t-{KEPT_MAX}"))
