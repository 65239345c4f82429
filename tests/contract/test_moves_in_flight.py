"""Moves that are changed while they run, as clients see them: on ours, and on Kafka."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest
from confluent_kafka import Producer

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic
from control.model.ids import TopicPartition
from tests.contract.operations_rig import unique
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

FIRST, SECOND, THIRD = 101, 102, 103
RECORD_BYTES: Final = 900_000
REPLICAS: Final = "follower.replication.throttled.replicas"
RATE: Final = "follower.replication.throttled.rate"

Lists = tuple[tuple[int, ...], ...]


@pytest.fixture
async def topic(bootstrap: str, admin: KafkaAdmin) -> AsyncIterator[str]:
    """One replica on 101, and more than the others take over at one byte a second."""
    name = unique("flight")
    await admin.create_topic(NewTopic(name=name, assignment={0: (FIRST,)}))
    throttled = {REPLICAS: f"0:{SECOND},0:{THIRD}"}
    await admin.alter_configs(_resource(ConfigScope.TOPIC, name), throttled)
    brokers = [_resource(ConfigScope.BROKER, str(broker)) for broker in (SECOND, THIRD)]
    await admin.alter_many_configs({broker: {RATE: "1"} for broker in brokers})
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(4):
        producer.produce(name, bytes(RECORD_BYTES), partition=0)
    assert producer.flush(WAIT_S) == 0
    await eventually(lambda: _rates(admin, brokers), {"1"})
    yield name
    await admin.alter_many_configs({broker: {RATE: None} for broker in brokers})
    await admin.delete_topic(name)


def _resource(scope: ConfigScope, name: str) -> ConfigResource:
    return ConfigResource(scope=scope, name=name)


async def _rates(admin: KafkaAdmin, brokers: list[ConfigResource]) -> set[str | None]:
    """What each broker itself tells of its throttle; it has heard of the topic's before."""
    found = await admin.describe_many_configs(brokers, (RATE,))
    return {entry.value for entries in found.values() for entry in entries}


async def _target(
    admin: KafkaAdmin, topic: str, replicas: tuple[int, ...] | None, *, is_guarded: bool = False
) -> bool:
    """Whether it was taken."""
    refused = await admin.alter_reassignments(
        {TopicPartition(topic, 0): replicas}, allow_replication_factor_change=not is_guarded
    )
    return not refused


async def _move(admin: KafkaAdmin, topic: str) -> Lists:
    """Replicas, adding, removing of the move in flight; nothing when there is none."""
    moves = await admin.list_reassignments()
    for move in moves:
        if move.topic == topic:
            return move.replicas, move.adding_replicas, move.removing_replicas
    return ()


async def _state(admin: KafkaAdmin, topic: str) -> Lists:
    """Replicas, and the sorted ISR."""
    (found,) = await admin.topics([topic])
    (partition,) = found.partitions
    return partition.replicas, tuple(sorted(partition.isr))


async def test_a_move_is_retargeted_and_cancelled_from_all_that_is_there(
    admin: KafkaAdmin, topic: str
) -> None:
    assert await _target(admin, topic, (SECOND,))
    await eventually(lambda: _move(admin, topic), ((SECOND, FIRST), (SECOND,), (FIRST,)))
    assert await _target(admin, topic, (THIRD,))
    there = ((THIRD, FIRST, SECOND), (THIRD,), (FIRST, SECOND))
    await eventually(lambda: _move(admin, topic), there)
    everybody = (THIRD, SECOND, FIRST)
    assert await _target(admin, topic, everybody)
    await eventually(lambda: _move(admin, topic), (everybody, (THIRD,), (FIRST, SECOND)))
    assert await _target(admin, topic, None)
    await eventually(lambda: _move(admin, topic), ())
    await eventually(lambda: _state(admin, topic), ((SECOND, FIRST), (FIRST,)))
    assert not await _target(admin, topic, None)


async def test_the_guard_goes_by_what_a_move_heads_for(admin: KafkaAdmin, topic: str) -> None:
    assert not await _target(admin, topic, (SECOND, THIRD), is_guarded=True)
    assert await _target(admin, topic, (SECOND, THIRD))
    await eventually(
        lambda: _move(admin, topic), ((SECOND, THIRD, FIRST), (SECOND, THIRD), (FIRST,))
    )
    assert not await _target(admin, topic, (FIRST,), is_guarded=True)
    assert await _target(admin, topic, (FIRST, THIRD), is_guarded=True)
    assert await _target(admin, topic, None)


async def test_a_move_waits_for_a_kept_replica_that_is_out_of_sync(
    admin: KafkaAdmin, topic: str
) -> None:
    """A cancelled retarget leaves 102 as a replica that still has to copy."""
    for target in ((SECOND,), (THIRD,), None):
        assert await _target(admin, topic, target)
    await eventually(lambda: _state(admin, topic), ((FIRST, SECOND), (FIRST,)))
    await admin.alter_configs(_resource(ConfigScope.BROKER, str(THIRD)), {RATE: None})
    assert await _target(admin, topic, (SECOND, THIRD))
    await eventually(lambda: _state(admin, topic), ((SECOND, THIRD, FIRST), (FIRST, THIRD)))
    await asyncio.sleep(1)
    assert await _move(admin, topic) == ((SECOND, THIRD, FIRST), (THIRD,), (FIRST,))
    await admin.alter_configs(_resource(ConfigScope.BROKER, str(SECOND)), {RATE: None})
    await eventually(lambda: _state(admin, topic), ((SECOND, THIRD), (SECOND, THIRD)))
