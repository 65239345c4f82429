"""Another tool changes what a running move has set: on ours, and on Kafka with Kafka's own tool."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.ids import ClusterId, TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.move.commands import ControlAction
from control.move.events import Outcome
from control.move.journal_lines import lines_of_state
from control.move.state import OperationState, Phase
from control.move.throttle import RATES, REPLICA_LISTS
from control.operations.bus.client import OperationsClient, wait_for
from control.operations.catalogue.brokers.clear_throttles import ClearThrottles
from control.operations.executor.throttles.left_throttles import EVERY_BROKER
from control.operations.operation_session import OperationSession
from control.operations.reassignment.planning import Planning
from planner.reassignment_json import format_reassignment
from planner.waves import WaveRules
from tests.contract.operations_rig import (
    ExecutorProcess,
    add_data,
    placement_of,
    throttles,
    topic_with_data,
    watch_until,
)
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.node_cluster import NodeCluster
from tests.support.patience import SLOWNESS
from tests.support.phrases import lacking
from tests.support.settle import eventually

TOOL: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
FROM, TO, ELSEWHERE = (101, 102), (103, 102), (101, 103)
RATE: Final = 100_000
FAST: Final = "50MiB"
CORDONED: Final = "cordoned.log.dirs"
FIRST, SECOND, THIRD = ALL = 2, 0, 1
"""Partitions in the order of their waves: the smaller one first."""


@pytest.fixture(
    params=[
        pytest.param("our_cluster", id="ours"),
        pytest.param("kafka_cluster", id="kafka", marks=pytest.mark.kafka_oracle),
        pytest.param("kafka_today", id="kafka-today", marks=pytest.mark.kafka_oracle),
    ]
)
def cluster(request: pytest.FixtureRequest) -> NodeCluster:
    found: NodeCluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def bootstrap(cluster: NodeCluster) -> str:
    """Ours, Kafka, and the newest Kafka."""
    return cluster.bootstrap


@pytest.fixture
async def client(bootstrap: str) -> AsyncIterator[OperationsClient]:
    async with OperationsClient(bootstrap, who="tester") as opened:
        yield opened


async def begin(admin: KafkaAdmin, client: OperationsClient) -> tuple[str, str]:
    """A topic of three partitions on its way, one a wave; (topic, operation). The slower the
    machine, the more there is to copy: each wave has to last until somebody interferes."""
    topic = await topic_with_data(admin, dict.fromkeys(ALL, FROM), records=round(200 * SLOWNESS))
    for partition, records in ((SECOND, 2_000), (THIRD, 3_000)):
        much = round(records * SLOWNESS)
        await add_data(admin, TopicPartition(topic, partition), records=much)
    targets = {TopicPartition(topic, partition): TO for partition in ALL}
    proposal = await Planning(admin).proposal(targets)
    bootstrap = admin.wire.settings.bootstrap
    rules = WaveRules(partitions=1)
    return topic, await client.submit_reassign(
        proposal, bootstrap=bootstrap, throttle=RATE, waves=rules
    )


async def clear(admin: KafkaAdmin, topic: str) -> None:
    """Remove every throttle."""
    brokers = (await admin.describe_cluster()).brokers
    named = [ConfigResource(scope=ConfigScope.BROKER, name=str(it.id)) for it in brokers]
    of_topic = ConfigResource(scope=ConfigScope.TOPIC, name=topic)
    gone = {resource: dict.fromkeys(RATES) for resource in named}
    await admin.alter_many_configs({**gone, of_topic: dict.fromkeys(REPLICA_LISTS)})


async def verify(admin: KafkaAdmin, topic: str, folder: Path, cluster: NodeCluster) -> None:
    """`kafka-reassign-partitions --verify` of a plan that is done: it removes all throttles of the
    cluster. Beside our brokers without a JVM, by what it asks for."""
    if not isinstance(cluster, KafkaCluster):
        await clear(admin, topic)
        return
    plan = folder / "done.json"
    plan.write_text(format_reassignment({TopicPartition(topic, FIRST): TO}))
    words = ("--bootstrap-server", admin.wire.settings.bootstrap)
    file = ("--reassignment-json-file", str(plan), "--verify")
    run = partial(run_tool, TOOL, *words, *file, version=cluster.version)
    done = await asyncio.to_thread(run)
    assert "Clearing broker-level throttles" in done.stdout, done


async def rates(admin: KafkaAdmin, topic: str) -> set[str]:
    """The rates that brokers show."""
    shown = await throttles(admin, topic)
    return {value for name, value in shown.items() if name.endswith(RATES)}


def in_wave(number: int, state: OperationState) -> bool:
    progress = state.progress
    return progress is not None and progress.wave == number and bool(progress.in_flight)


async def test_a_throttle_that_a_tool_clears_in_a_pause_is_set_again_and_then_the_move_stops(
    admin: KafkaAdmin,
    client: OperationsClient,
    tmp_path: Path,
    bootstrap: str,
    cluster: NodeCluster,
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, move = await begin(admin, client)
        await watch_until(client, move, lambda it: in_wave(1, it))
        await client.control(move, ControlAction.PAUSE)
        await watch_until(client, move, lambda it: it.phase is Phase.PAUSED)
        await verify(admin, topic, tmp_path, cluster)
        await eventually(lambda: rates(admin, topic), set())
        await client.control(move, ControlAction.RESUME)
        told = await watch_until(client, move, lambda it: in_wave(2, it))
        assert await rates(admin, topic) == {str(RATE)}, executor.said()
        assert not lacking(told.notes[-1], "another tool", "97.7 KiB/s → removed", "set again")
        assert any("another tool" in line.what for line in lines_of_state(told))

        await clear(admin, topic)
        await watch_until(client, move, lambda it: bool(it.stopped_for))
        stopped = await watch_until(
            client, move, lambda it: it.phase is Phase.PAUSED and bool(it.stopped_for)
        )
        assert not lacking(stopped.message, "second time", f"partiscope moves resume {move}")
        assert (await placement_of(admin, topic))[THIRD] == FROM, "no other wave begins"
        await client.control(move, ControlAction.THROTTLE, throttle=FAST)
        await client.control(move, ControlAction.RESUME)
        done = await wait_for(client, move)
        assert done.outcome is Outcome.DONE, (done, executor.said())
    assert await placement_of(admin, topic) == dict.fromkeys(ALL, TO)
    assert await throttles(admin, topic) == {}


@pytest.mark.thorough
async def test_a_partition_that_a_tool_retargets_in_flight_is_told_and_left_to_it(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, move = await begin(admin, client)
        await watch_until(client, move, lambda it: in_wave(1, it))
        key = TopicPartition(topic, FIRST)
        assert await admin.alter_reassignments({key: ELSEWHERE}) == {}
        await watch_until(client, move, lambda it: str(key) in it.refused)
        await client.control(move, ControlAction.THROTTLE, throttle=FAST)
        ended = await wait_for(client, move)
        assert ended.outcome is Outcome.FAILED, (ended, executor.said())
    assert f"re-targeted to {list(ELSEWHERE)} by another tool" in ended.message
    wanted = {FIRST: ELSEWHERE, SECOND: TO, THIRD: TO}
    await eventually(lambda: placement_of(admin, topic), wanted)
    assert await throttles(admin, topic) == {}


@pytest.mark.thorough
async def test_an_order_of_replicas_that_a_tool_changes_in_flight_is_set_again(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, move = await begin(admin, client)
        await watch_until(client, move, lambda it: in_wave(1, it))
        key = TopicPartition(topic, FIRST)
        assert await admin.alter_reassignments({key: TO[::-1]}) == {}
        await client.control(move, ControlAction.THROTTLE, throttle=FAST)
        told = await watch_until(client, move, lambda it: f"order of {key}" in it.interfered)
        assert not lacking(told.notes[-1], str(key), "another tool", str(list(TO)), "set again")
        done = await wait_for(client, move)
        assert done.outcome is Outcome.DONE, (done, executor.said())
    assert await placement_of(admin, topic) == dict.fromkeys(ALL, TO)
    assert await throttles(admin, topic) == {}


@pytest.mark.thorough
async def test_a_target_that_is_cordoned_in_flight_is_told(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    target = ConfigResource(scope=ConfigScope.BROKER, name=str(TO[0]))
    if not await admin.describe_configs(target, (CORDONED,)):
        pytest.skip("this Kafka cannot cordon")
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, move = await begin(admin, client)
        await watch_until(client, move, lambda it: in_wave(2, it))
        await admin.alter_configs(target, {CORDONED: "*"})
        try:
            words = f"broker {TO[0]} was cordoned meanwhile"
            await watch_until(client, move, lambda it: any(words in note for note in it.notes))
        finally:
            await admin.alter_configs(target, {CORDONED: None})
        await client.control(move, ControlAction.THROTTLE, throttle=FAST)
        done = await wait_for(client, move)
        assert done.outcome is Outcome.DONE, (done, executor.said())
    assert await placement_of(admin, topic) == dict.fromkeys(ALL, TO)


@pytest.mark.thorough
async def test_left_throttles_are_previewed_and_cleared_and_those_of_a_move_stay(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    other = await topic_with_data(admin, {0: FROM}, records=1)
    listed = ConfigResource(scope=ConfigScope.TOPIC, name=other)
    described = await admin.describe_cluster()
    watched = WatchedCluster(bootstrap=bootstrap, cluster_id=ClusterId(described.cluster_id))
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, move = await begin(admin, client)
        await watch_until(client, move, lambda it: in_wave(1, it))
        await admin.alter_configs(listed, dict.fromkeys(REPLICA_LISTS, "0:101"))
        async with OperationSession(watched, bus=bootstrap) as session:
            previewed = await session.preview(ClearThrottles())
            wanted = {f"topic {other} {name}" for name in REPLICA_LISTS}
            assert {change.name for change in previewed.effect.changes} == wanted
            assert await throttles(admin, other), "a preview changes nothing"
            await session.perform(previewed)
        assert await rates(admin, topic) == {str(RATE)}, "of the move that runs"
        await client.control(move, ControlAction.THROTTLE, throttle=FAST)
        done = await wait_for(client, move)
        assert done.outcome is Outcome.DONE, (done, executor.said())
    for name in ("103", EVERY_BROKER.name):
        broker = ConfigResource(scope=ConfigScope.BROKER, name=name)
        await admin.alter_configs(broker, dict.fromkeys(RATES, str(RATE)))
        await eventually(lambda: rates(admin, topic), {str(RATE)})
        async with OperationSession(watched, bus=bootstrap) as session:
            previewed = await session.preview(ClearThrottles())
            assert len(previewed.effect.changes) == len(RATES)
            await session.perform(previewed)
        await eventually(lambda: throttles(admin, other), {})
