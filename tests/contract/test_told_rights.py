"""Each operation on Kafka with ACLs: refused to who may only describe, allowed by the very command
that is told with the refusal."""

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic as Topic
from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import RefusedError, UnreachableError
from control.kafka.ports import ConfigResource, ConfigScope, ElectionType, NewTopic
from control.kafka.records.producer import OutgoingRecord, RecordProducer
from control.kafka.records.reader import RecordReader
from control.model.ids import TopicPartition as Key
from control.model.watched_cluster import Site
from control.operations.bus.client import OperationsClient
from control.operations.catalogue import NEEDED_RIGHTS
from control.operations.catalogue.brokers.cordon import Cordon
from control.operations.catalogue.groups.delete_group import DeleteGroup
from control.operations.catalogue.groups.delete_offsets import DeleteOffsets
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.operation import Operation, OperationContext
from control.operations.catalogue.topics.delete_records import DeleteRecords
from control.operations.executor.throttles.throttle_on_cluster import ClusterThrottle
from control.operations.reassignment.facts import read_facts
from control.operations.reassignment.planning import Planning
from control.operations.reassignment.preflight import preflight
from planner.proposal import PartitionChange
from tests.contract.operations_rig import ours
from tests.support.collecting import becomes, collecting
from tests.support.kafka_oracle import KAFKA_TODAY, run_tool
from tests.support.kafka_secure import ADMIN, EVERYBODY, OPERATORS, SecureKafka
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.timeout(240)]

GROUP, FORGETS, LEAVES = "billing", "forgets", "leaves"
DENIED = {
    ErrorCode.cluster_authorization_failed,
    ErrorCode.topic_authorization_failed,
    ErrorCode.group_authorization_failed,
}
DESCRIBES = (
    (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "*", AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "*", AclOperation.DESCRIBE_CONFIGS),
    (ResourceType.GROUP, "*", AclOperation.DESCRIBE),
)
Act = Callable[[KafkaSettings, KafkaAdmin], Awaitable[object]]


@pytest.fixture
def secure(kafka_today_libs: Path, tmp_path: Path) -> Iterator[SecureKafka]:
    """One node with a topic per operation that changes one."""
    assert kafka_today_libs.exists()
    overrides = {"offsets.topic.num.partitions": "1"}
    with SecureKafka(tmp_path, version=KAFKA_TODAY, overrides=overrides) as cluster:
        admin = cluster.admin()
        admin.list_topics(timeout=WAIT_S)
        topics = [Topic(name, 1, 1) for name in ("orders", "grows", "leaves")]
        for future in admin.create_topics(topics).values():
            future.result(WAIT_S)
        yield cluster


async def _reassign(_: KafkaSettings, admin: KafkaAdmin) -> None:
    """As the executor does it: throttled, moved, the throttle taken away."""
    throttling = ClusterThrottle(admin, ours)
    change = PartitionChange(topic="orders", partition=0, before=(101,), after=(101,), size_bytes=0)
    record = await throttling.plan((change,), 1_000_000)
    await throttling.apply(record, record.entries)
    assert await admin.alter_reassignments({change.key: change.after}) == {}
    assert await throttling.remove(record) is None


async def _elect(_: KafkaSettings, admin: KafkaAdmin) -> None:
    assert await admin.elect_leaders([Key("orders", 0)], ElectionType.PREFERRED) == {}


async def _create(_: KafkaSettings, admin: KafkaAdmin) -> None:
    await admin.create_topic(NewTopic(name="made", partitions=1, replication_factor=1))


async def _create_lesson(_: KafkaSettings, admin: KafkaAdmin) -> None:
    await admin.create_topic(NewTopic(name="acks-lesson-1", partitions=1, replication_factor=1))


async def _grow(_: KafkaSettings, admin: KafkaAdmin) -> None:
    await admin.create_partitions("grows", 2)


async def _configure(_: KafkaSettings, admin: KafkaAdmin) -> None:
    orders = ConfigResource(scope=ConfigScope.TOPIC, name="orders")
    await admin.alter_configs(orders, {"retention.ms": "3600000"})


async def _configure_broker(_: KafkaSettings, admin: KafkaAdmin) -> None:
    every = ConfigResource(scope=ConfigScope.BROKER, name="")
    await admin.alter_configs(every, {"log.cleaner.backoff.ms": "15000"})


async def _clear_throttles(_: KafkaSettings, admin: KafkaAdmin) -> None:
    """Also where none is left."""
    first = ConfigResource(scope=ConfigScope.BROKER, name="101")
    await admin.alter_configs(first, {"leader.replication.throttled.rate": None})
    orders = ConfigResource(scope=ConfigScope.TOPIC, name="orders")
    await admin.alter_configs(orders, {"leader.replication.throttled.replicas": None})


async def _uncordon(_: KafkaSettings, admin: KafkaAdmin) -> None:
    """Also where nothing is cordoned, which the operation leaves as it is."""
    first = ConfigResource(scope=ConfigScope.BROKER, name="101")
    await admin.alter_configs(first, {"cordoned.log.dirs": None})


async def _drain(settings: KafkaSettings, admin: KafkaAdmin) -> None:
    """Its three changes; broker 109 is not known."""
    await _uncordon(settings, admin)
    await _reassign(settings, admin)
    assert not await admin.unregister_broker(109)


async def _delete(_: KafkaSettings, admin: KafkaAdmin) -> None:
    await admin.delete_topic("leaves")


async def _produce(settings: KafkaSettings, _: KafkaAdmin | None = None) -> None:
    record = OutgoingRecord(topic="orders", partition=0, value=b"hello")
    until_s = time.monotonic() + WAIT_S
    while True:
        try:
            async with RecordProducer(settings) as producer:
                await producer.send(record)
                return
        except UnreachableError:  # a busy broker takes longer than a person waits
            if time.monotonic() > until_s:
                raise


async def _browse(settings: KafkaSettings, _: KafkaAdmin) -> None:
    async with RecordReader(settings) as reader:
        await reader.fetch({Key("grows", 0): 0}, max_wait_ms=100)


def _by(asked: Operation) -> Act:
    async def act(_: KafkaSettings, admin: KafkaAdmin) -> None:
        planning, site = Planning(admin), Site(admin.wire.settings.bootstrap)
        context = OperationContext(
            admin=admin, moves=OperationsClient(None), planning=planning, site=site
        )
        await (await asked.preview(context)).command.perform(context)

    return act


async def _cordon(settings: KafkaSettings, admin: KafkaAdmin) -> None:
    """Not for long: the others go on meanwhile, and need the only broker."""
    await _by(Cordon(broker=101))(settings, admin)
    await _uncordon(settings, admin)


ACTS: Mapping[str, Act] = {
    "reassign": _reassign,
    "elect": _elect,
    "create_topic": _create,
    "add_partitions": _grow,
    "configure_topic": _configure,
    "configure_broker": _configure_broker,
    "cordon": _cordon,
    "uncordon": _uncordon,
    "drain": _drain,
    "clear_throttles": _clear_throttles,
    "teach_acks": _create_lesson,
    "delete_topic": _delete,
    "produce": _produce,
    "browse": _browse,
    "reset_offsets": _by(ResetOffsets(group=GROUP, topic="orders", to="earliest")),
    "delete_records": _by(DeleteRecords(topic="orders", before="latest")),
    "delete_offsets": _by(DeleteOffsets(group=FORGETS, topic="orders")),
    "delete_group": _by(DeleteGroup(group=LEAVES)),
}


async def _denied(settings: Mapping[str, KafkaSettings]) -> dict[str, str]:
    """Which operations are refused now, each to its own user, and in which words."""

    async def refusal(name: str) -> str | None:
        async with KafkaAdmin.to(settings[name]) as admin:
            try:
                await ACTS[name](settings[name], admin)
            except RefusedError as error:
                if error.code not in (*DENIED, ErrorCode.invalid_replication_factor):
                    raise
                return str(error)
        return None

    told = await asyncio.gather(*map(refusal, settings))
    return {name: text for name, text in zip(settings, told, strict=True) if text is not None}


def _obey(secure: SecureKafka, told: str) -> None:
    login = str(secure.client_properties(ADMIN))
    for command in told.split(" && "):
        words = shlex.split(command.replace("ADMIN.properties", login))
        done = run_tool("org.apache.kafka.tools.AclCommand", *words[1:])
        assert done.returncode == 0, (command, done.stdout, done.stderr)


async def test_the_command_that_is_told_is_enough_for_its_operation(secure: SecureKafka) -> None:
    """Each operation by a user of its own, to whom nothing else was granted."""
    assert ACTS.keys() == NEEDED_RIGHTS.keys()
    users = dict(zip(ACTS, OPERATORS, strict=True))
    settings = {
        name: secure.connection(user, sasl_mechanism="PLAIN") for name, user in users.items()
    }
    by_admin = secure.connection(ADMIN, sasl_mechanism="PLAIN")
    await _produce(by_admin)
    async with KafkaAdmin.to(by_admin) as admin:
        for group in (GROUP, FORGETS, LEAVES):
            await admin.groups.commit_offsets(group, {Key("orders", 0): 1})
    secure.grant(*DESCRIBES, user=EVERYBODY)
    asking = OPERATORS[0]
    async with collecting(settings["reassign"]) as (collector, _):
        await becomes(lambda: collector.report().denied_operations.keys(), ACTS.keys())
        assert collector.report().missing_rights == (), "describing needs no more"
        told = collector.report().grants
    assert (await _denied(settings)).keys() == ACTS.keys()
    for name, user in users.items():
        command = told[name].replace(f"User:{asking} ", f"User:{user} ")
        assert f"User:{user} " in command
        await asyncio.to_thread(_obey, secure, command)
    left = dict(settings)

    async def still_denied() -> dict[str, str]:
        """What was done once need not be done again."""
        denied = await _denied(left)
        for name in left.keys() - denied.keys():
            del left[name]
        return denied

    await eventually(still_denied, {})


async def test_who_may_not_describe_configs_is_told_that_a_minimum_is_unknown(
    secure: SecureKafka,
) -> None:
    """Fewer replicas, by who may move them but neither read nor set configs."""
    *describes, configs, _ = DESCRIBES
    change = PartitionChange(
        topic="orders", partition=0, before=(101, 102), after=(101,), size_bytes=0
    )
    secure.grant(*describes, (ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER))

    async def told() -> dict[str, str]:
        async with KafkaAdmin.to(secure.connection()) as admin:
            facts = await read_facts(admin, changes=(change,))
        checks = preflight(facts, (change,), throttle_bytes_per_s=None)
        return {check.name: check.reason for check in checks if "orders" in check.reason}

    async def names_the_right() -> bool | None:
        reason = (await told()).get("min.insync.replicas")
        return None if reason is None else "orders: unknown, needs DESCRIBE_CONFIGS" in reason

    await eventually(names_the_right, True)
    secure.grant(configs)
    await eventually(names_the_right, None)
