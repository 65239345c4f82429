"""A cordoned broker on ours and on the newest Kafka: read, planned round, refused before Kafka
refuses, cordoned and uncordoned by operations."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.move.check import Verdict
from control.operations.catalogue.brokers.cordon import Cordon
from control.operations.catalogue.brokers.cordoning import Cordoning
from control.operations.catalogue.brokers.uncordon import Uncordon
from control.operations.errors import InvalidInputError
from control.operations.operation_session import OperationSession
from control.operations.reassignment.facts import read_facts, topology_of
from control.operations.reassignment.planning import preview_of, proposal_for
from planner.goals import Goal, PlanRequest
from planner.optimizer import plan
from tests.contract.operations_rig import unique
from tests.support.collecting import becomes, collecting
from tests.support.kafka_oracle import KafkaCluster
from tests.support.node_cluster import NodeCluster
from tests.support.phrases import kafka_says
from tests.support.settle import eventually

CORDONED = 103
CONFIG = "cordoned.log.dirs"
RESOURCE = ConfigResource(scope=ConfigScope.BROKER, name=str(CORDONED))
EVERY_BROKER = ConfigResource(scope=ConfigScope.BROKER, name="")
NOT_PLACED = "Unable to replicate the partition {} time(s): {}"
TOO_FEW = kafka_says(
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered "
    "or some brokers have all their log directories cordoned."
)
IN_ASSIGNMENT = kafka_says(
    f"The manual partition assignment includes broker {CORDONED}, but all its log directories are "
    "cordoned."
)


@pytest.fixture(params=["our_cluster", pytest.param("kafka_today", marks=pytest.mark.kafka_oracle)])
def cluster(request: pytest.FixtureRequest) -> NodeCluster:
    """Ours, and the one that says what is right."""
    found: NodeCluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def admin(cluster: NodeCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin.to(cluster.bootstrap) as opened:
        yield opened


@asynccontextmanager
async def cordoned(admin: KafkaAdmin, paths: str = "*") -> AsyncIterator[None]:
    """Broker 103 with these log directories cordoned, once the brokers tell."""
    wanted = set(await _paths(admin)) if paths == "*" else {paths}
    await admin.alter_configs(RESOURCE, {CONFIG: paths})
    try:
        await _until_cordoned(admin, wanted)
        yield
    finally:
        await admin.alter_configs(RESOURCE, {CONFIG: None})
        await _until_cordoned(admin, set())


@pytest.mark.kafka_oracle
async def test_each_log_directory_tells_whether_it_is_cordoned(kafka_today: KafkaCluster) -> None:
    async with KafkaAdmin.to(kafka_today.bootstrap) as admin:
        first, _ = await _paths(admin)
        async with cordoned(admin, first):
            told = {d.path: d.is_cordoned for d in await admin.log_dirs()}
            assert [path for path, is_cordoned in told.items() if is_cordoned] == [first]
            assert (await read_facts(admin)).cordoned == frozenset()
        async with cordoned(admin):
            assert (await read_facts(admin)).cordoned == {CORDONED}


async def test_values_that_cannot_be_are_refused_in_kafkas_words(admin: KafkaAdmin) -> None:
    path = (await _paths(admin))[0]
    one_by_one = kafka_says(
        "Cannot update these configs at default cluster level, broker id must be specified"
    )
    for resource, value, words in (
        (RESOURCE, "/nowhere", "present in log.dirs or log.dir. Missing entries : /nowhere"),
        (RESOURCE, f"{path},{path}", f"'{CONFIG}' values must not be duplicated."),
        (RESOURCE, f"*,{path}", f"When {CONFIG} is set to *, "),
        (EVERY_BROKER, "*", f"{one_by_one}: [{CONFIG}]"),
    ):
        with pytest.raises(RefusedError) as refused:
            await admin.alter_configs(resource, {CONFIG: value}, validate_only=True)
        assert refused.value.code.name == "invalid_request"
        assert words in str(refused.value)


async def test_new_topics_stay_away_from_it(admin: KafkaAdmin) -> None:
    async with cordoned(admin):
        name = unique("placed")
        await admin.create_topic(NewTopic(name=name, partitions=6, replication_factor=2))
        (topic,) = await admin.topics([name])
        assert {it for p in topic.partitions for it in p.replicas} == {101, 102}
        for asked, words in (
            (NewTopic(name="never", partitions=1, replication_factor=3),
             NOT_PLACED.format(3, TOO_FEW)),
            (NewTopic(name="never", assignment={0: (CORDONED, 999)}), IN_ASSIGNMENT),
            (NewTopic(name="never", assignment={0: (CORDONED, CORDONED)}), IN_ASSIGNMENT),
        ):  # fmt: skip
            with pytest.raises(RefusedError) as refused:
                await admin.create_topic(asked)
            assert words in str(refused.value)


async def test_it_is_cordoned_and_uncordoned_by_operations(
    cluster: NodeCluster, admin: KafkaAdmin
) -> None:
    paths = await _paths(admin)
    watched = WatchedCluster(bootstrap=cluster.bootstrap)
    async with OperationSession(watched, bus=cluster.bootstrap, who="tester") as session:

        async def do(asked: Cordoning) -> list[str]:
            previewed = await session.preview(asked)
            if previewed.is_needed:
                await session.perform(previewed)
            return [change.line for change in previewed.effect.changes]

        assert await do(Cordon(broker=CORDONED, directories=(paths[0],))) == [
            f"{paths[0]}: open → cordoned"
        ]
        await _until_cordoned(admin, {paths[0]})
        left = [f"{path}: open → cordoned" for path in paths[1:]]
        assert await do(Cordon(broker=CORDONED, reason="to replace")) == left
        await _until_cordoned(admin, set(paths))
        assert await do(Cordon(broker=CORDONED)) == []
        assert await do(Uncordon(broker=CORDONED, directories=(paths[0],))) == [
            f"{paths[0]}: cordoned → open"
        ]
        await _until_cordoned(admin, set(paths[1:]))
        await do(Uncordon(broker=CORDONED))
        await _until_cordoned(admin, set())
        (entry,) = await admin.describe_configs(RESOURCE, (CONFIG,))
        assert entry.is_default, "no setting is left behind"
        lines = [it for it in await session.journal.lines() if it.reason == "to replace"]
        assert [(it.what, it.after) for it in lines] == [
            ("cordon broker 103", dict.fromkeys(paths[1:], "cordoned")) for _ in left
        ]
        for wrong, words in (
            (Cordon(broker=CORDONED, directories=("/nowhere",)), f"it has {', '.join(paths)}"),
            (Uncordon(broker=999), "999 .*101, 102, 103"),
        ):
            with pytest.raises(InvalidInputError, match=words):
                await session.preview(wrong)


@pytest.mark.kafka_oracle
async def test_a_kafka_that_cannot_cordon_says_so(kafka_cluster: KafkaCluster) -> None:
    watched = WatchedCluster(bootstrap=kafka_cluster.bootstrap)
    async with OperationSession(watched, bus=None, who="tester") as session:
        with pytest.raises(InvalidInputError, match=r"Kafka cordons from 4\.3 on"):
            await session.preview(Cordon(broker=101))


@pytest.mark.parametrize(
    "after",
    [(103, 101), (101, 102, 103), (102, 101), (102,), (102, 103)],
    ids=str,
)
async def test_preflight_refuses_what_kafka_refuses(
    admin: KafkaAdmin, after: tuple[int, ...]
) -> None:
    key = await _topic(admin, (101, 103))
    async with cordoned(admin):
        facts = await read_facts(admin)
        preview = preview_of(facts, proposal_for(facts, {key: after}), throttle="none")
        (check,) = (check for check in preview.checks if check.name == "cordons")
        refused = await admin.alter_reassignments({key: after})
        assert (check.verdict is Verdict.FAIL) == (key in refused), (check, refused)
        if refused:
            assert IN_ASSIGNMENT in str(refused[key])
            assert f"broker {CORDONED} is cordoned" in check.reason
            assert str(key) in check.reason
            assert f"`partiscope brokers uncordon {CORDONED}`" in check.reason


async def test_plans_are_taken_by_kafka_whether_they_empty_it_or_not(admin: KafkaAdmin) -> None:
    keys = [await _topic(admin, replicas) for replicas in [(101, 103), (101, 102)]]
    async with cordoned(admin):
        topology = topology_of(await read_facts(admin))
        names = tuple(key.topic for key in keys)
        for request in (
            PlanRequest(goal=Goal.BALANCE, topics=names),
            PlanRequest(goal=Goal.RACKS, topics=names, remove_brokers=(CORDONED,)),
        ):
            targets = plan(topology, request).alternatives[0].proposal.targets()
            assert await admin.alter_reassignments(targets) == {}

        async def holders() -> set[int]:
            (topic,) = await admin.topics(names[:1])
            return set(topic.partitions[0].replicas)

        await eventually(holders, {101, 102})


async def _topic(admin: KafkaAdmin, replicas: tuple[int, ...]) -> TopicPartition:
    name = unique("cordon")
    await admin.create_topic(NewTopic(name=name, assignment={0: replicas}))
    return TopicPartition(name, 0)


async def _paths(admin: KafkaAdmin) -> Sequence[str]:
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


@pytest.mark.kafka_oracle
async def test_the_collector_tells_which_log_directories_are_cordoned(
    kafka_today: KafkaCluster,
) -> None:
    async with KafkaAdmin.to(kafka_today.bootstrap) as admin:
        first, second = await _paths(admin)
        async with (
            cordoned(admin, first),
            collecting(KafkaSettings(bootstrap=kafka_today.bootstrap)) as (_, collected),
        ):

            def told() -> list[list[tuple[str, bool]]]:
                rows = [it for records in collected.rounds.values() for it in records]
                return [
                    sorted((found.path, found.is_cordoned) for found in it.directories)
                    for record in rows
                    for it in record.brokers
                    if it.id == record.envelope.broker == CORDONED and it.directories is not None
                ]

            await becomes(lambda: told()[:1], [sorted([(first, True), (second, False)])])
