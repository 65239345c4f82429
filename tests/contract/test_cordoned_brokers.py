"""A cordoned broker on the newest Kafka: read, planned round, and refused before Kafka refuses."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from control.kafka.admin import KafkaAdmin
from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic
from control.model.ids import TopicPartition
from control.operations.reassignment.facts import read_facts, topology_of
from control.operations.reassignment.planning import preview_of, proposal_for
from control.operations.verdict import Verdict
from control.planner.goals import Goal, PlanRequest
from control.planner.optimizer import plan
from tests.contract.operations_rig import unique
from tests.support.kafka_oracle import KafkaCluster
from tests.support.settle import eventually

pytestmark = pytest.mark.kafka_oracle

CORDONED = 103
RESOURCE = ConfigResource(scope=ConfigScope.BROKER, name=str(CORDONED))


@pytest.fixture
async def today(kafka_today: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin.to(kafka_today.bootstrap) as opened:
        yield opened


@asynccontextmanager
async def cordoned(admin: KafkaAdmin, paths: str = "*") -> AsyncIterator[None]:
    """Broker 103 with these log directories cordoned, once the brokers tell."""
    wanted = set(await _paths(admin)) if paths == "*" else {paths}
    await admin.alter_configs(RESOURCE, {"cordoned.log.dirs": paths})
    try:
        await _until_cordoned(admin, wanted)
        yield
    finally:
        await admin.alter_configs(RESOURCE, {"cordoned.log.dirs": None})
        await _until_cordoned(admin, set())


async def test_each_log_directory_tells_whether_it_is_cordoned(
    today: KafkaAdmin, kafka_today: KafkaCluster
) -> None:
    first, _ = map(str, kafka_today.directories(CORDONED))
    async with cordoned(today, first):
        told = {d.path: d.is_cordoned for d in await today.log_dirs()}
        assert [path for path, is_cordoned in told.items() if is_cordoned] == [first]
        assert (await read_facts(today)).cordoned == frozenset()
    async with cordoned(today):
        assert (await read_facts(today)).cordoned == {CORDONED}


@pytest.mark.parametrize(
    "after",
    [(103, 101), (101, 102, 103), (102, 101), (102,), (102, 103)],
    ids=str,
)
async def test_preflight_refuses_what_kafka_refuses(
    today: KafkaAdmin, after: tuple[int, ...]
) -> None:
    key = await _topic(today, (101, 103))
    async with cordoned(today):
        facts = await read_facts(today)
        preview = preview_of(facts, proposal_for(facts, {key: after}), throttle="none")
        (check,) = (check for check in preview.checks if check.name == "cordons")
        refused = await today.alter_reassignments({key: after})
        assert (check.verdict is Verdict.FAIL) == (key in refused), (check, refused)
        if refused:
            assert "all its log directories are cordoned" in str(refused[key])
            assert f"broker {CORDONED} is cordoned, and Kafka refuses {key} there" in check.reason
            assert f"--entity-name {CORDONED} --delete-config cordoned.log.dirs" in check.reason


async def test_plans_are_taken_by_kafka_whether_they_empty_it_or_not(today: KafkaAdmin) -> None:
    keys = [await _topic(today, replicas) for replicas in [(101, 103), (101, 102)]]
    async with cordoned(today):
        topology = topology_of(await read_facts(today))
        names = tuple(key.topic for key in keys)
        for request in (
            PlanRequest(goal=Goal.BALANCE, topics=names),
            PlanRequest(goal=Goal.RACKS, topics=names, remove_brokers=(CORDONED,)),
        ):
            targets = plan(topology, request).alternatives[0].proposal.targets()
            assert await today.alter_reassignments(targets) == {}

        async def holders() -> set[int]:
            (topic,) = await today.topics(names[:1])
            return set(topic.partitions[0].replicas)

        await eventually(holders, {101, 102})


async def _topic(admin: KafkaAdmin, replicas: tuple[int, ...]) -> TopicPartition:
    name = unique("cordon")
    await admin.create_topic(NewTopic(name=name, assignment={0: replicas}))
    return TopicPartition(name, 0)


async def _paths(admin: KafkaAdmin) -> Iterable[str]:
    return [log_dir.path for log_dir in await admin.log_dirs([CORDONED])]


async def _until_cordoned(admin: KafkaAdmin, wanted: set[str]) -> None:
    """The broker tells at once, the controller knows with its next heartbeat."""

    async def told() -> tuple[set[str], bool]:
        paths = {d.path for d in await admin.log_dirs([CORDONED]) if d.is_cordoned}
        return paths, await _is_refused(admin)

    is_whole = wanted == set(await _paths(admin))
    await eventually(told, (wanted, is_whole))


async def _is_refused(admin: KafkaAdmin) -> bool:
    """Whether the controller takes no new partition for the broker."""
    try:
        topic = NewTopic(name=unique("asked"), assignment={0: (CORDONED,)})
        await admin.create_topic(topic, validate_only=True)
    except RefusedError:
        return True
    return False
