"""A broker is drained until it is unregistered, on ours and on the newest Kafka."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.model.watched_cluster import WatchedCluster
from control.move.events import Outcome
from control.operations.bus.client import wait_for
from control.operations.catalogue.brokers.drain import Drain
from control.operations.catalogue.brokers.uncordon import Uncordon
from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.catalogue.operation import Done
from control.operations.errors import NotDrainedError, StalePreviewError
from control.operations.operation_session import OperationSession
from control.operations.reassignment.draining import DrainStep, replicas_on
from tests.contract.operations_rig import (
    ExecutorProcess,
    end_offsets,
    placement_of,
    topic_with_data,
    unique,
)
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster
from tests.support.node_cluster import NodeCluster
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

pytestmark = pytest.mark.thorough

DRAINED = 104
ON_KAFKA = pytest.param("kafka", marks=(pytest.mark.kafka_oracle, pytest.mark.soak))


@pytest.fixture(params=["ours", ON_KAFKA])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NodeCluster]:
    """Four brokers; the last is no controller."""
    made: NodeCluster
    if request.param == "ours":
        made = LocalCluster(tmp_path / "cluster", brokers=4, late=1)
    else:
        request.getfixturevalue("kafka_today_libs")
        made = KafkaCluster(
            tmp_path / "cluster", brokers=4, late=1, version=KAFKA_TODAY, log_dirs=2
        )
    with made:
        made.start_node(DRAINED)
        yield made


@pytest.fixture
async def session(cluster: NodeCluster, tmp_path: Path) -> AsyncIterator[OperationSession]:
    watched = WatchedCluster(bootstrap=cluster.bootstrap)
    with ExecutorProcess(bus=cluster.bootstrap, log=tmp_path / "executor.err") as executor:
        # Its topics exist then: created between preview and cordon, they would lie on the broker.
        await asyncio.to_thread(executor.wait_until_said, "ready")
        async with OperationSession(watched, bus=cluster.bootstrap, who="tester") as opened:
            await eventually(lambda: _alive(opened.admin), {101, 102, 103, DRAINED})
            yield opened


async def _alive(admin: KafkaAdmin) -> set[int]:
    return {broker.id for broker in (await admin.describe_cluster()).brokers}


async def _held(admin: KafkaAdmin) -> int:
    """Replicas on the drained broker."""
    partitions = (p for topic in await admin.topics() for p in topic.partitions)
    return replicas_on(DRAINED, partitions)


async def _step(session: OperationSession) -> DrainStep:
    command = (await session.preview(Drain(broker=DRAINED))).effect.command
    assert isinstance(command, Drain)
    return command.step


async def _do(session: OperationSession) -> Done:
    previewed = await session.preview(Drain(broker=DRAINED))
    return await session.perform(previewed, typed=previewed.word)


async def test_a_broker_is_drained_step_by_step(
    session: OperationSession, cluster: NodeCluster
) -> None:
    admin = session.admin
    placement = {0: (DRAINED, 101), 1: (102, DRAINED), 2: (DRAINED, 103), 3: (101, 102)}
    topic = await topic_with_data(admin, placement, records=50)
    previewed = await session.preview(Drain(broker=DRAINED))
    lines = previewed.effect.lines
    assert f"broker {DRAINED}: open → cordoned" in lines
    assert any("replicas, " in line and "move to other brokers" in line for line in lines)
    before = await _held(admin)
    assert before >= 3
    done = await session.perform(previewed)
    assert done.view == "move"
    (cordoned,) = {log_dir.is_cordoned for log_dir in await admin.log_dirs([DRAINED])}
    assert cordoned
    ended = await wait_for(session.moves, done.params["move"])
    assert ended.outcome is Outcome.DONE
    await eventually(lambda: _held(admin), 0)
    (told,) = await admin.topics([topic])
    assert [p.replicas for p in told.partitions if p.partition == 3] == [(101, 102)]
    assert await _step(session) is DrainStep.STOP
    empty = await session.preview(Drain(broker=DRAINED))
    assert not empty.is_needed
    assert f"broker {DRAINED} is empty" in empty.effect.notes[0]
    cluster.kill(DRAINED, signal.SIGTERM)
    await eventually(lambda: _step(session), DrainStep.UNREGISTER)
    stale = await session.preview(Drain(broker=DRAINED))
    assert "unregistered" in (await _do(session)).words
    assert DRAINED not in (await admin.registered_brokers() or ())
    assert await _step(session) is DrainStep.DONE
    with pytest.raises(StalePreviewError, match="next step"):
        await session.perform(stale)
    drains = [it for it in await session.journal.lines() if it.what == f"drain broker {DRAINED}"]
    assert len(drains) == 2


async def test_a_broker_whose_replicas_have_nowhere_to_go_is_not_drained(
    session: OperationSession,
) -> None:
    """No traceback: the planner's proof in words, and nothing is changed."""
    placed = {0: (101, 102, 103, DRAINED)}
    await session.admin.create_topic(NewTopic(name=unique("everywhere"), assignment=placed))
    with pytest.raises(NotDrainedError, match=r"broker 104 .*too few"):
        await session.preview(Drain(broker=DRAINED))
    assert not any(log_dir.is_cordoned for log_dir in await session.admin.log_dirs([DRAINED]))


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_a_drain_goes_on_after_each_kill(
    session: OperationSession, cluster: NodeCluster, tmp_path: Path
) -> None:
    """500 replicas under load; the command is killed once in each step. The move takes five
    minutes: it is spread for the producer's sake."""
    admin, log = session.admin, tmp_path / "drain.err"
    topic = unique("many")
    placed = {number: (DRAINED, 101 + number % 3) for number in range(500)}
    await admin.create_topic(NewTopic(name=topic, assignment=placed))

    async def is_moving() -> bool:
        states = await session.moves.list()
        return any(it.progress is not None and not it.is_finished for it in states)

    async def is_cordoned() -> bool:
        return all(log_dir.is_cordoned for log_dir in await admin.log_dirs([DRAINED]))

    async def is_told() -> bool:
        return f"broker {DRAINED} is empty" in log.read_text()

    async def is_unregistered() -> bool:
        return DRAINED not in (await admin.registered_brokers() or ())

    is_over = asyncio.Event()
    load = asyncio.create_task(asyncio.to_thread(_produce, cluster.bootstrap, topic, is_over))
    try:
        for is_so in (is_cordoned, is_moving, is_told):
            command = _drain_command(cluster, log)
            await eventually(is_so, True, timeout_s=900)
            command.kill()
            command.wait()
        assert await _held(admin) == 0
        cluster.kill(DRAINED, signal.SIGTERM)
        await eventually(lambda: _step(session), DrainStep.UNREGISTER)
        command = _drain_command(cluster, log)
        await eventually(is_unregistered, True, timeout_s=120)
        command.kill()
        command.wait()
        assert await asyncio.to_thread(_drain_command(cluster, log).wait, 120) == 0, log.read_text()
        assert DRAINED not in (await admin.registered_brokers() or ())
    finally:
        is_over.set()
    acknowledged, failed = await load
    assert failed == 0
    assert sum((await end_offsets(admin, topic)).values()) == acknowledged > 0


@pytest.mark.soak
async def test_a_drain_is_rolled_back_in_the_middle(session: OperationSession) -> None:
    admin = session.admin
    placement = {number: (DRAINED, 101 + number % 3) for number in range(12)}
    topic = await topic_with_data(admin, placement, records=500)
    previewed = await session.preview(Drain(broker=DRAINED, throttle="1MiB"))
    move = (await session.perform(previewed)).params["move"]
    await eventually(lambda: _some_arrived(admin, topic), True, timeout_s=60)
    for asked in (Uncordon(broker=DRAINED), RollBack(move=move)):
        await session.perform(await session.preview(asked))
    await eventually(lambda: placement_of(admin, topic), placement, timeout_s=120)


async def _some_arrived(admin: KafkaAdmin, topic: str) -> bool:
    return any(DRAINED not in replicas for replicas in (await placement_of(admin, topic)).values())


def _drain_command(cluster: NodeCluster, log: Path) -> subprocess.Popen[bytes]:
    command = ("brokers", "drain", str(DRAINED), "--yes", "--bootstrap", cluster.bootstrap)
    with log.open("ab") as err:
        return subprocess.Popen(
            (sys.executable, "-m", "partiscope", *command, "--bus", cluster.bootstrap),
            stdout=err,
            stderr=err,
        )


def _produce(bootstrap: str, topic: str, is_over: asyncio.Event) -> tuple[int, int]:
    """Records acknowledged and failed until it is over: some 250 a second of 1 KB."""
    counts = [0, 0]

    def count(error: object, _: object) -> None:
        counts[error is not None] += 1

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    while not is_over.is_set():
        for number in range(50):
            producer.produce(topic, b"x" * 1000, str(number).encode(), on_delivery=count)
        producer.poll(0)
        time.sleep(0.2)
    producer.flush(WAIT_S)
    return counts[0], counts[1]
