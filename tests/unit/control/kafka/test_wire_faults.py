"""Connections to brokers that break, lie, hang, or speak another protocol.

What leaves the wire is an answer to this very question, or an error of the one tree; never an
answer to another question, and never an error of a library.
"""

import asyncio
import random
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection import apis
from control.kafka.connection.wire import Api, KafkaWire, address_that_answers, brokers_that_answer
from control.kafka.errors import (
    KafkaPortError,
    UnreachableError,
    UnsupportedApiError,
    WrongClusterError,
)
from control.kafka.records.consumer import GroupConsumer
from control.kafka.records.producer import RecordProducer
from tests.unit.control.kafka.scripted_cluster import (
    API_VERSIONS,
    Asked,
    Closed,
    Frame,
    Reply,
    ScriptedCluster,
    Silence,
)

QUICK_MS: Final = 100


@pytest.fixture
def one() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={"orders": {0: (1,)}}) as cluster:
        yield cluster


@pytest.fixture
def three() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(ids=(1, 2, 3), topics={"orders": {0: (1, 2), 1: (2, 3)}}) as cluster:
        yield cluster


async def ask(cluster: ScriptedCluster, **settings: Any) -> str:
    """One question, by connections of its own."""
    async with KafkaAdmin.to(cluster.settings(**settings)) as admin:
        return (await admin.describe_cluster()).cluster_id


NO_ANSWERS: Final[dict[str, Reply]] = {
    "http": Frame(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    "tls alert": Frame(b"\x15\x03\x03\x00\x02\x02\x46"),
    "a size below zero": Frame(b"\xff\xff\xff\xff"),
    "an empty frame": Frame(b"\x00\x00\x00\x00"),
    "a frame without a body": Frame(b"\x00\x00\x00\x04\x00\x00\x00\x01"),
    "closed": Closed,
}


@pytest.mark.parametrize("api", [API_VERSIONS, apis.METADATA.key], ids=["versions", "metadata"])
@pytest.mark.parametrize("kind", NO_ANSWERS)
async def test_what_is_no_answer_is_told_as_one_that_did_not_come(
    one: ScriptedCluster, api: int, kind: str
) -> None:
    one.on(api, NO_ANSWERS[kind])
    with pytest.raises(UnreachableError) as told:
        await ask(one, request_timeout_ms=QUICK_MS, connect_timeout_ms=QUICK_MS)
    assert one.address(1) in str(told.value)
    assert told.value.next_step


async def test_half_a_frame_ends_with_the_time_of_a_request(one: ScriptedCluster) -> None:
    one.on(apis.METADATA, lambda asked: Frame(asked.encoded(**one.metadata(asked))[:-3]))
    with pytest.raises(UnreachableError):
        await ask(one, request_timeout_ms=QUICK_MS, attempts_max=1)


async def test_a_range_of_versions_that_is_upside_down_is_no_defect_of_ours(
    one: ScriptedCluster,
) -> None:
    one.served[apis.METADATA.key] = (9, 2)
    with pytest.raises(UnreachableError):
        await ask(one)
    with pytest.raises(UnreachableError):
        async with RecordProducer(one.settings()):
            pass
    with pytest.raises(UnreachableError):
        async with GroupConsumer(one.settings(), group_id="g", topics=("orders",)):
            pass


async def test_an_answer_to_another_question_is_never_taken(one: ScriptedCluster) -> None:
    """The second one to Metadata carries another number: it is not given, and asked for anew."""
    wrong = iter([True])

    def answer(asked: Asked) -> Reply:
        frame = asked.encoded(**one.metadata(asked) | {"cluster_id": "of another question"})
        if next(wrong, False):
            return Frame(frame[:4] + struct.pack(">i", asked.correlation_id + 1) + frame[8:])
        return one.metadata(asked)

    one.on(apis.METADATA, answer)
    assert await ask(one) == "scripted"
    assert one.connections[1] == 2


async def test_an_answer_that_nobody_waits_for_any_more_goes_to_nobody(
    one: ScriptedCluster,
) -> None:
    """Who gives up a request leaves its answer behind on the connection."""
    async with KafkaAdmin.to(one.settings()) as admin:
        await admin.describe_cluster()
        for _ in range(5):
            given_up = asyncio.create_task(admin.describe_cluster())
            await asyncio.sleep(0)
            given_up.cancel()
            with suppress(asyncio.CancelledError):
                await given_up
            (topic,) = await admin.topics(["orders"])
            assert [each.leader for each in topic.partitions] == [1]


async def test_many_questions_at_once_get_each_their_own_answer(three: ScriptedCluster) -> None:
    three.topics |= {f"t{n}": {n: (1 + n % 3,)} for n in range(30)}
    async with KafkaAdmin.to(three.settings()) as admin:
        await admin.describe_cluster()
        found = await asyncio.gather(*(admin.topics([f"t{n}"]) for n in range(30)))
    assert [topic.name for (topic,) in found] == [f"t{n}" for n in range(30)]
    assert [topic.partitions[0].leader for (topic,) in found] == [1 + n % 3 for n in range(30)]


async def test_an_answer_that_cannot_be_read_names_the_question_and_does_not_blame_tls(
    one: ScriptedCluster,
) -> None:
    def damaged(asked: Asked) -> Reply:
        frame = asked.encoded(**one.metadata(asked))
        return Frame(frame[:12] + b"\x7f" * (len(frame) - 12))

    one.on(apis.METADATA, damaged)
    with pytest.raises(UnreachableError) as told:
        await ask(one)
    assert "could not be read" in str(told.value)
    assert "security_protocol" not in told.value.next_step


@pytest.mark.parametrize("seed", range(4))
async def test_any_damage_of_an_answer_is_an_error_of_ours(
    three: ScriptedCluster, seed: int
) -> None:
    chance = random.Random(seed)

    def damaged(asked: Asked) -> Reply:
        frame = bytearray(asked.encoded(**three.metadata(asked)))
        for _ in range(chance.randint(1, 4)):
            frame[chance.randrange(8, len(frame))] = chance.randrange(256)
        return Frame(bytes(frame))

    for _ in range(15):
        three.scripts.clear()
        async with KafkaAdmin.to(three.settings(attempts_max=1)) as admin:
            await admin.describe_cluster()
            three.on(apis.METADATA, damaged)
            with suppress(KafkaPortError):
                (topic,) = await admin.topics(["orders"])
                assert len(topic.partitions) >= 0


async def test_a_request_that_may_have_arrived_is_not_sent_twice(one: ScriptedCluster) -> None:
    api = Api(key=apis.DELETE_TOPICS.key, name="delete", versions=(1, 5))
    one.on(api, Closed)
    wire = KafkaWire(one.settings())
    fields = {"topic_names": ("orders",), "timeout": 100}
    try:
        with pytest.raises(UnreachableError):
            await wire.send(api, fields, is_idempotent=False)
        assert len(one.requests(api)) == 1
        with pytest.raises(UnreachableError):
            await wire.send(api, fields)
        assert len(one.requests(api)) == 1 + wire.settings.attempts_max
    finally:
        await wire.close()


async def test_one_broker_that_is_down_does_not_hide_the_others(three: ScriptedCluster) -> None:
    async with KafkaAdmin.to(three.settings(bootstrap=three.bootstrap)) as admin:
        await admin.describe_cluster()
        three.stop(1)
        for _ in range(4):
            assert (await admin.describe_cluster()).cluster_id == "scripted"
        with pytest.raises(UnreachableError) as told:
            await admin.wire.send(apis.METADATA, {"topics": ()}, node_id=1)
    assert "broker 1" in str(told.value)
    assert three.address(1) in str(told.value)


async def test_one_bootstrap_address_that_talks_nonsense_does_not_hide_the_others(
    three: ScriptedCluster,
) -> None:
    with ScriptedCluster() as other:
        other.on(API_VERSIONS, NO_ANSWERS["http"])
        both = f"{other.address(1)},{three.bootstrap}"
        assert await ask(three, bootstrap=both, request_timeout_ms=500) == "scripted"


async def test_a_broker_that_metadata_does_not_list_is_named_and_not_guessed(
    three: ScriptedCluster,
) -> None:
    async with KafkaAdmin.to(three.settings()) as admin:
        with pytest.raises(UnreachableError) as told:
            await admin.wire.send(apis.METADATA, {"topics": ()}, node_id=77)
    assert "broker 77" in str(told.value)
    assert all(asked.api != apis.METADATA.key or asked.broker != 77 for asked in three.asked)


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "a\0b"])
async def test_a_broker_that_advertises_no_host_is_told_as_unreachable(
    three: ScriptedCluster, host: str
) -> None:
    three.hosts[2] = host
    async with KafkaAdmin.to(three.settings(bootstrap=three.address(1))) as admin:
        await admin.describe_cluster()
        with pytest.raises(UnreachableError, match="broker 2"):
            await admin.wire.send(apis.METADATA, {"topics": ()}, node_id=2)


async def test_a_broker_that_moved_is_asked_at_its_new_address(three: ScriptedCluster) -> None:
    async with KafkaAdmin.to(three.settings()) as admin:
        await admin.wire.send(apis.METADATA, {"topics": ()}, node_id=2)
        three.ports[2] = three.ports[3]
        await admin.describe_cluster()
        before = len(three.asked)
        await admin.wire.send(apis.METADATA, {"topics": ()}, node_id=2)
        assert [asked.broker for asked in three.asked[before:] if asked.api == 3] == [3]


async def test_a_closed_client_opens_nothing_again(one: ScriptedCluster) -> None:
    admin = KafkaAdmin.to(one.settings())
    await admin.describe_cluster()
    await admin.close()
    opened = one.connections[1]
    with pytest.raises(UnreachableError):
        await admin.describe_cluster()
    await admin.close()
    assert one.connections[1] == opened


async def test_no_version_in_common_is_told_with_those_that_are_served(
    one: ScriptedCluster,
) -> None:
    one.served[apis.LIST_REASSIGNMENTS.key] = (7, 9)
    async with KafkaAdmin.to(one.settings()) as admin:
        with pytest.raises(UnsupportedApiError, match="7 to 9"):
            await admin.list_reassignments()
        del one.served[apis.LIST_REASSIGNMENTS.key]
    async with KafkaAdmin.to(one.settings()) as admin:
        with pytest.raises(UnsupportedApiError):
            await admin.list_reassignments()
    assert one.requests(apis.LIST_REASSIGNMENTS) == []


@pytest.mark.parametrize("told", ["another", None])
async def test_another_cluster_at_the_address_gets_no_question(
    one: ScriptedCluster, told: str | None
) -> None:
    one.on(apis.METADATA, lambda asked: one.metadata(asked) | {"cluster_id": told})
    with pytest.raises(WrongClusterError) as error:
        await ask(one, cluster_id="scripted")
    assert error.value.is_for_good
    assert len(one.requests(apis.METADATA)) == 1
    with pytest.raises(WrongClusterError):
        await address_that_answers(one.settings(cluster_id="scripted"))


async def test_the_address_that_answers_is_one_that_does(three: ScriptedCluster) -> None:
    three.stop(1)
    assert await address_that_answers(three.settings()) in (three.address(2), three.address(3))
    three.stop(2)
    three.stop(3)
    with pytest.raises(UnreachableError):
        await address_that_answers(three.settings())


async def test_brokers_that_answer_are_told_from_those_that_hang_or_are_gone(
    three: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.connection.wire.BROKER_ANSWERS_WITHIN_S", 0.2)
    three.on(apis.METADATA, lambda it: Silence if it.broker == 2 else three.metadata(it))
    three.stop(3)
    addresses = {broker: ("127.0.0.1", three.ports[broker]) for broker in three.ids}
    assert await brokers_that_answer(three.settings(), addresses) == {1}
    assert await brokers_that_answer(three.settings(), {}) == frozenset()
