"""Somebody writes nonsense to the topics of the bus: executor, lists and journal go on without it,
and say so."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.move.commands import (
    OPERATIONS_TOPIC,
    ControlAction,
    ControlCommand,
    ReassignCommand,
)
from control.move.events import EVENTS_TOPIC, Outcome
from control.move.state import Phase
from control.move.throttle import RATE_MIN_BYTES_PER_S
from control.operations.bus.client import OperationsClient, wait_for
from control.operations.bus.topics import Bus
from planner.proposal import PartitionChange, Proposal
from tests.contract.operations_rig import ExecutorProcess, topic_with_data
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.support.settle import eventually

pytestmark = pytest.mark.thorough

POISON: Final = (
    b'{"operation_id":"mv-x","kind":"accepted","at_ms":1,"data":{}}',
    b'{"operation_id":"mv-x","kind":"note","at_ms":Infinity}',
    b'{"operation_id":"mv-x","kind":"reassign","bootstrap":"h:1","changes":"AAAA"}',
    b'{"operation_id":"mv-x","kind":"control","action":"cancel","throttle":{"a":1}}',
    b"[" * 200_000,
    b"\xff\xfe",
    b"",
)
YEAR_9999_MS: Final = 253_402_300_799_999
"""The last moment that an act may carry at all."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path) as running:
        yield running


def poison(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic in EVENTS_TOPIC, OPERATIONS_TOPIC:
        for key in b"mv-x", b"mv-x/progress", b"\xff":
            for value in POISON:
                producer.produce(topic, value, key=key)
    assert producer.flush(WAIT_S) == 0


async def test_a_move_is_done_beside_records_that_nobody_can_read(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    async with Bus(cluster.bootstrap) as bus:
        await bus.ensure_topics()
    poison(cluster.bootstrap)
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name="t", partitions=1, replication_factor=1))
        (topic,) = await admin.topics(["t"])
    (here,) = topic.partitions[0].replicas
    there = next(each for each in cluster.ids if each != here)
    change = PartitionChange(topic="t", partition=0, before=(here,), after=(there,), size_bytes=0)
    log = tmp_path / "executor.log"
    with ExecutorProcess(cluster.bootstrap, log):
        async with OperationsClient(cluster.bootstrap) as client:
            for changes in (change,), (change.inverse(),):
                proposal = Proposal(name="p", changes=changes)
                moved = await client.submit_reassign(proposal, bootstrap=cluster.bootstrap)
                assert (await wait_for(client, moved)).outcome is Outcome.DONE
                poison(cluster.bootstrap)  # and while it listens
    assert lacking(log.read_text(), "cannot be read", OPERATIONS_TOPIC) == []
    assert "Traceback" not in log.read_text()
    line = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
    for command in "moves", "journal":
        said = line.run(command)
        assert lacking(said, "left out", EVENTS_TOPIC, "offset") == []
    assert len(line.moves()) == 2
    assert len(json.dumps(line.json("journal")["journal"])) > 2


async def test_the_executor_moves_nothing_on_a_cluster_that_its_settings_leave_alone(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "partiscope.toml"
    config.write_text(f'[clusters.prod]\nbootstrap = "{cluster.bootstrap}"\nread_only = true\n')
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(config))
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name="t", partitions=1, replication_factor=1))
        (topic,) = await admin.topics(["t"])
        (here,) = before = topic.partitions[0].replicas
        there = next(each for each in cluster.ids if each != here)
        change = PartitionChange(
            topic="t", partition=0, before=tuple(before), after=(there,), size_bytes=0
        )
        with ExecutorProcess(cluster.bootstrap, tmp_path / "executor.log"):
            async with OperationsClient(cluster.bootstrap, who="somebody else") as client:
                moved = await client.submit_reassign(
                    Proposal(name="forged", changes=(change,)),
                    bootstrap=cluster.bootstrap,
                    cluster_id=(await admin.describe_cluster()).cluster_id,
                )
                ended = await wait_for(client, moved)
        assert (ended.outcome, "read_only" in ended.message) == (Outcome.REFUSED, True)
        (topic,) = await admin.topics(["t"])
        assert topic.partitions[0].replicas == before


async def test_a_command_that_nobody_has_proven_moves_nothing(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered, and journal and list mark it: anybody may write any name into it."""
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name="t", partitions=1, replication_factor=1))
        (topic,) = await admin.topics(["t"])
    (here,) = topic.partitions[0].replicas
    there = next(each for each in cluster.ids if each != here)
    change = PartitionChange(topic="t", partition=0, before=(here,), after=(there,), size_bytes=0)
    command = ReassignCommand(
        operation_id="mv-forged", bootstrap=cluster.bootstrap, changes=(change,), who="admin"
    )
    async with Bus(cluster.bootstrap) as bus:
        await bus.ensure_topics()
        await bus.publish_command(replace(command, is_foreign=True))
    with ExecutorProcess(cluster.bootstrap, tmp_path / "executor.log"):
        async with OperationsClient(cluster.bootstrap) as client:
            ended = await wait_for(client, "mv-forged")
    assert (ended.outcome, ended.is_foreign) == (Outcome.REFUSED, True)
    assert lacking(ended.message, "no proof", "proof.further_key_files") == []
    line = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
    assert [it["is_proven"] for it in line.moves()] == [False]
    monkeypatch.setenv("COLUMNS", "200")
    said = line.run("journal")
    assert lacking(said, "admin (not proven)") == [], said
    told = [(it["proof"], it["outcome"]) for it in line.json("journal")["journal"]]
    assert told == [("not proven", "refused")]


async def test_a_forged_command_makes_the_executor_connect_to_no_strange_address(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    change = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
    callers = list[object]()
    server = await asyncio.start_server(lambda *peer: callers.append(peer), "127.0.0.1", 0)
    async with server:
        stranger = "{}:{}".format(*server.sockets[0].getsockname())
        with ExecutorProcess(cluster.bootstrap, tmp_path / "executor.log"):
            async with OperationsClient(cluster.bootstrap, who="somebody else") as client:
                moved = await client.submit_reassign(
                    Proposal(name="forged", changes=(change,)), bootstrap=stranger, cluster_id="x"
                )
                ended = await wait_for(client, moved)
    assert ended.outcome is Outcome.REFUSED
    assert lacking(ended.message, stranger, cluster.bootstrap, "[clusters.NAME]") == []
    assert (callers, ended.may_roll_back) == ([], False)


@contextlib.asynccontextmanager
async def slow_move(
    cluster: LocalCluster, log: Path
) -> AsyncIterator[tuple[OperationsClient, str, Callable[[], Awaitable[Phase]]]]:
    """A move that runs for as long as is wanted: who asked for it, its id, and its phase now."""
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        topic = await topic_with_data(admin, {0: (cluster.ids[0],)}, records=2_000)
    here, there, *_ = cluster.ids
    change = PartitionChange(topic=topic, partition=0, before=(here,), after=(there,), size_bytes=0)
    with ExecutorProcess(cluster.bootstrap, log):
        async with OperationsClient(cluster.bootstrap) as client:
            moved = await client.submit_reassign(
                Proposal(name="p", changes=(change,)),
                bootstrap=cluster.bootstrap,
                throttle=RATE_MIN_BYTES_PER_S,
            )

            async def phase() -> Phase:
                return (await client.get(moved)).phase

            await eventually(phase, Phase.RUNNING)
            yield client, moved, phase


async def test_who_asks_for_an_act_is_told_that_the_executor_refuses_it(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command line with another data directory has another key: its acts have no known proof."""
    async with slow_move(cluster, tmp_path / "executor.log") as (client, moved, phase):
        monkeypatch.setenv("PARTISCOPE_PROOF__KEY_FILE", str(tmp_path / "other.key"))
        line = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
        said = await asyncio.to_thread(line.run, "moves", "pause", moved, status=3)
        assert lacking(said, moved, "pause is refused", "no proof", "--data") == [], said
        assert await phase() is Phase.RUNNING
        await client.control(moved, ControlAction.CANCEL)
        assert (await wait_for(client, moved)).outcome is Outcome.CANCELLED


@pytest.mark.parametrize("is_proven", [False, True])
async def test_an_act_of_the_year_9999_does_not_keep_later_acts_away(
    cluster: LocalCluster, tmp_path: Path, *, is_proven: bool
) -> None:
    async with (
        slow_move(cluster, tmp_path / "executor.log") as (client, moved, phase),
        Bus(cluster.bootstrap) as bus,
    ):

        async def refused() -> list[int]:
            return [at_ms for at_ms, _ in (await client.get(moved)).refused_acts]

        forged = ControlCommand(
            operation_id=moved,
            action=ControlAction.PAUSE,
            submitted_ms=YEAR_9999_MS,
            is_foreign=not is_proven,
        )
        await bus.publish_command(forged)
        await eventually(refused, [YEAR_9999_MS])
        assert await phase() is Phase.RUNNING
        await client.control(moved, ControlAction.CANCEL)
        assert (await wait_for(client, moved)).outcome is Outcome.CANCELLED
