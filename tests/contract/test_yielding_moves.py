"""Moves that yield to a consumer group that falls behind, on ours and on the newest Kafka."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from aiokafka import AIOKafkaConsumer

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.move.events import EventKind, Outcome
from control.move.journal_lines import lines_of_state
from control.move.state import OperationState, Phase
from control.move.throttle import RATES
from control.move.yields import YieldMode, YieldRules
from control.operations.bus.client import OperationsClient, wait_for
from control.operations.reassignment.planning import Planning
from control.operations.reassignment.producer_traffic import AUTO_FLOOR_BYTES_PER_S
from planner.waves import WaveRules
from tests.contract.operations_rig import (
    ExecutorProcess,
    end_offsets,
    placement_of,
    throttles,
    topic_with_data,
    unique,
    watch_until,
)
from tests.support.node_cluster import NodeCluster
from tests.support.paced_producer import PacedProducer, fill
from tests.support.phrases import lacking
from tests.support.settle import eventually

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]

FROM: Final = (101, 102)
TO: Final = (103, 102)
KEYS: Final = range(2)
MIB: Final = 1 << 20
PAUSED_BYTES: Final = 4 * MIB
"""Kafka's followers fetch 1 MiB before their throttle counts: at 300 kB/s a wave takes ten seconds,
so that a group is seen to be behind before the next wave would begin."""


@pytest.fixture(
    params=[
        pytest.param("our_cluster", id="ours"),
        pytest.param("kafka_today", id="kafka", marks=(pytest.mark.kafka_oracle, pytest.mark.soak)),
    ]
)
def bootstrap(request: pytest.FixtureRequest) -> str:
    cluster: NodeCluster = request.getfixturevalue(request.param)
    return cluster.bootstrap


@pytest.fixture
async def client(bootstrap: str) -> AsyncIterator[OperationsClient]:
    async with OperationsClient(bootstrap, who="tester") as opened:
        yield opened


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A topic of two partitions under load, and a group that reads it while it may."""

    admin: KafkaAdmin
    client: OperationsClient
    topic: str
    group: str
    may_read: asyncio.Event

    @property
    def keys(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, partition) for partition in KEYS]

    async def move(self, mode: YieldMode, *, rate: int) -> str:
        """From FROM to TO, one partition at a time; the group stands still once it has begun."""
        proposal = await Planning(self.admin).proposal(dict.fromkeys(self.keys, TO))
        move = await self.client.submit_reassign(
            proposal,
            bootstrap=self.admin.wire.settings.bootstrap,
            throttle=rate,
            waves=WaveRules(partitions=1, spread_s=0.0),
            yields=YieldRules(mode=mode, behind_s=2.0),
        )
        await self.until(move, lambda state: state.waves_begun >= 1)
        self.may_read.clear()
        return move

    async def until(self, move: str, is_so: Callable[[OperationState], bool]) -> OperationState:
        return await watch_until(self.client, move, is_so)

    async def has_caught_up(self) -> bool:
        ends = await end_offsets(self.admin, self.topic)
        read = await self.admin.groups.committed_offsets(self.group)
        return all(read.get(key, 0) > ends[key.partition] - 50 for key in self.keys)

    async def rates(self) -> set[int]:
        """Of every broker that has one."""
        told = await throttles(self.admin, self.topic)
        return {int(rate) for name, rate in told.items() if name.endswith(RATES)}


@asynccontextmanager
async def reader_of(
    admin: KafkaAdmin, client: OperationsClient, *, partition_bytes: int
) -> AsyncIterator[Reader]:
    """A group without members, with old commits there, holds nothing."""
    topic = await topic_with_data(admin, dict.fromkeys(KEYS, FROM), records=1)
    bootstrap = admin.wire.settings.bootstrap
    await asyncio.to_thread(fill, bootstrap, topic, dict.fromkeys(KEYS, partition_bytes))
    may_read = asyncio.Event()
    may_read.set()
    reader = Reader(
        admin=admin, client=client, topic=topic, group=unique("readers"), may_read=may_read
    )
    await admin.groups.commit_offsets(unique("left"), dict.fromkeys(reader.keys, 0))
    reading = asyncio.create_task(_read_on(reader))
    try:
        with PacedProducer(bootstrap, topic, partitions=2, per_s=50):
            await eventually(reader.has_caught_up, wanted=True)
            yield reader
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await admin.delete_topic(topic)


async def _read_on(reader: Reader) -> None:
    """One member that commits what it reads, and stands still while it may not read."""
    consumer = AIOKafkaConsumer(
        reader.topic,
        bootstrap_servers=reader.admin.wire.settings.bootstrap,
        group_id=reader.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        while True:
            await reader.may_read.wait()
            if await consumer.getmany(timeout_ms=100):
                await consumer.commit()


def _has_done(count: int) -> Callable[[OperationState], bool]:
    return lambda state: state.progress is not None and state.progress.partitions_done >= count


@pytest.mark.parametrize(
    "is_killed",
    [pytest.param(False, id="lives", marks=pytest.mark.soak), pytest.param(True, id="killed")],
)
async def test_a_move_pauses_for_a_group_that_falls_behind_and_goes_on_by_itself(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, *, is_killed: bool
) -> None:
    """Also where its executor is killed while the move yields."""
    bus = admin.wire.settings.bootstrap
    async with reader_of(admin, client, partition_bytes=PAUSED_BYTES) as reader:
        with ExecutorProcess(bus=bus, log=tmp_path / "executor.err") as executor:
            move = await reader.move(YieldMode.PAUSE, rate=300_000)
            group = reader.group
            held = await reader.until(move, lambda state: state.yields_to == (group,))
            assert held.waves_begun == 1
            does = "no new partition begins"
            assert not lacking(held.yield_words, f"group {group}", "2.0 s", does, "after 10 m")
            if is_killed:
                assert executor.end(signal.SIGKILL) == -signal.SIGKILL
                executor.__enter__()
            waits = await reader.until(move, _has_done(1))
            assert (waits.yields_to, waits.phase) == ((group,), Phase.RUNNING)
            reader.may_read.set()
            ended = await wait_for(client, move)
            assert ended.outcome is Outcome.DONE, executor.said()
        assert await placement_of(admin, reader.topic) == dict.fromkeys(KEYS, TO)
        assert await throttles(admin, reader.topic) == {}
    steps = [it for it in ended.moments if it.kind in (EventKind.WAVE_STARTED, EventKind.YIELDED)]
    begins, ends = (step for step in steps if step.kind is EventKind.YIELDED)
    assert ends.words.startswith(f"goes on: group {group} ")
    waves = [step.wave for step in steps[: steps.index(ends)] if step.wave is not None]
    assert {*waves} == {1}
    assert steps[-1].wave == 2
    yields = [line.what for line in lines_of_state(ended)[1:]]
    assert yields == [f"{move} {step.words}" for step in (begins, ends)]
    assert (ended.yields_to, ended.yield_words) == ((), "")


async def test_a_throttle_is_lowered_on_brokers_while_a_move_yields_and_is_back_afterwards(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    """The executor is killed while it is lowered."""
    bus, rate = admin.wire.settings.bootstrap, 2 * MIB
    async with reader_of(admin, client, partition_bytes=30 * MIB) as reader:
        with ExecutorProcess(bus=bus, log=tmp_path / "executor.err") as executor:
            move = await reader.move(YieldMode.SLOW, rate=rate)
            assert await reader.rates() == {rate}
            held = await reader.until(move, lambda state: state.yields_to == (reader.group,))
            assert "the throttle is lowered" in held.yield_words
            await eventually(reader.rates, {AUTO_FLOOR_BYTES_PER_S})
            assert executor.end(signal.SIGKILL) == -signal.SIGKILL
            executor.__enter__()
            await asyncio.to_thread(executor.wait_until_said, "ready")
            await eventually(reader.rates, {AUTO_FLOOR_BYTES_PER_S})
            assert (await client.get(move)).yields_to == (reader.group,)
            reader.may_read.set()
            await reader.until(move, lambda state: not state.yields_to)
            await eventually(reader.rates, {rate})
            ended = await wait_for(client, move)
            assert ended.outcome is Outcome.DONE, executor.said()
        assert await placement_of(admin, reader.topic) == dict.fromkeys(KEYS, TO)
        assert await throttles(admin, reader.topic) == {}
    lowered = [it.words for it in ended.moments if it.words.startswith("lowered for consumers")]
    assert lowered
