"""What a principal may not do is refused, and what it may not see is not told: every API."""

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from broker.handlers.registry import load_registry
from broker.handlers.services import Listener
from broker.metadata.acls import Acl, Operation, PatternType, Permission, ResourceKind
from broker.metadata.image import topic_resource
from broker.protocol import codec
from broker.protocol.request_context import Principal
from broker.server.node import Node
from tests.support.cases import case
from tests.support.rights_cases import (
    BATCH,
    CASES,
    CLUSTER_DENIED,
    PARTLY,
    RIGHTS,
    STANDARD,
    TOPIC,
    TOPIC_DENIED,
    creation,
)
from tests.unit.broker.server.nodes import parts, running, until
from tests.unit.broker.server.test_sasl import Stranger

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def properties(**more: str) -> dict[str, str]:
    users = " ".join(f'user_{name}="s"' for name in ("node", "admin", "alice"))
    jaas = f'{PLAIN} username="node" password="s" {users};'
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": jaas,
        "listener.name.controller.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": STANDARD,
        "super.users": "User:node;User:admin",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        **more,
    }


OPENED: list[Stranger] = []


@pytest.fixture(autouse=True)
async def closed_connections() -> AsyncIterator[None]:
    """Of every client of a test, in its end."""
    yield
    for each in OPENED:
        each.writer.close()
        with suppress(ConnectionError):
            await each.writer.wait_closed()
    OPENED.clear()


async def logged_in(node: Node, name: str, address: str = "") -> Stranger:
    found = await Stranger.at(address or node.address)
    await found.ask(17, 1, mechanism="PLAIN")
    told = await found.ask(36, 2, auth_bytes=f"\0{name}\0s".encode())
    assert told.error_code is ErrorCode.none
    OPENED.append(found)
    return found


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[list[Node]]:
    async with running(tmp_path, 2, **properties()) as nodes:
        admin = await logged_in(nodes[1], "admin")
        topics = [
            {"name": it, "num_partitions": 1, "replication_factor": 1} for it in ("seen", "hidden")
        ]
        made = await admin.ask(19, 7, topics=topics, timeout=5_000)
        assert {it.error_code for it in made.topics} == {ErrorCode.none}
        await admin.ask(10, 6, key_type=0, coordinator_keys=("g",))
        await admin.ask(10, 6, key_type=1, coordinator_keys=("t",))
        await until(lambda: all(len(parts(it).metadata.image.topics) == 4 for it in nodes))
        yield nodes


async def allow(nodes: list[Node], *rights: tuple[ResourceKind, str, Operation]) -> None:
    admin = await logged_in(nodes[1], "admin")
    before = len(parts(nodes[0]).metadata.image.acls)
    made = await admin.ask(30, 3, creations=[creation(*it) for it in rights])
    assert {it.error_code for it in made.results} == {ErrorCode.none}
    await until(
        lambda: all(len(parts(it).metadata.image.acls) == before + len(rights) for it in nodes)
    )


OPEN = {17, 18, 36}
"""Asked for by whoever comes."""


async def test_without_a_right_every_api_refuses_and_tells_nothing(cluster: list[Node]) -> None:
    asked = {key for key, *_ in CASES}
    assert asked | OPEN == {it.api_key for it in load_registry(Listener.CLIENT).apis()}
    alice = await logged_in(cluster[0], "alice")
    for key, version, fields, errors, expected in CASES:
        with case(key, version, fields):
            answer = await alice.ask(key, version, **fields)
            assert errors(answer) == expected
    image = parts(cluster[0]).metadata.image
    assert set(image.topics) >= {"seen", "hidden"}
    assert not image.acls
    assert topic_resource("hidden") not in image.configs


async def test_with_one_right_the_rest_stays_hidden(cluster: list[Node]) -> None:
    await allow(cluster, *RIGHTS)
    image = parts(cluster[0]).metadata.image
    topics = {8: "__consumer_offsets", 9: "__consumer_offsets", 24: "__transaction_state"}
    for key, version, fields, found, expected in PARTLY:
        with case(key, version, fields):
            leader = image.partition(topics.get(key, "seen"), 0).leader
            alice = await logged_in(cluster[leader - 101], "alice")
            assert found(await alice.ask(key, version, **fields)) == expected


async def test_a_topic_is_reached_by_its_id_as_by_its_name(cluster: list[Node]) -> None:
    image = parts(cluster[0]).metadata.image
    id_ = image.topics["hidden"].topic_id
    alice = await logged_in(cluster[0], "alice")
    told = (await alice.ask(3, 12, topics=[{"name": None, "topic_id": id_}])).topics[0]
    assert (told.error_code, told.name, told.partitions) == (TOPIC_DENIED, None, ())
    asked = [{"name": None, "topic_id": id_}]
    deleted = (await alice.ask(20, 6, topics=asked, timeout=1_000)).responses[0]
    assert (deleted.error_code, deleted.name) == (TOPIC_DENIED, None)
    await allow(cluster, (TOPIC, "hidden", Operation.DESCRIBE))
    deleted = (await alice.ask(20, 6, topics=asked, timeout=1_000)).responses[0]
    assert (deleted.error_code, deleted.name) == (TOPIC_DENIED, "hidden")
    records = {"index": 0, "records": BATCH}
    sent = {"topic_id": id_, "name": "", "partition_data": [records]}
    told = await alice.ask(0, 13, acks=1, timeout=1_000, topic_data=[sent])
    assert [p.error_code for t in told.responses for p in t.partition_responses] == [TOPIC_DENIED]


async def seen(client: Stranger) -> set[str]:
    return {str(it.name) for it in (await client.ask(3, 12, topics=None)).topics}


async def test_a_denial_beats_a_permission_and_a_restart_keeps_both(cluster: list[Node]) -> None:
    await allow(cluster, (TOPIC, "*", Operation.READ))
    admin, alice = await logged_in(cluster[0], "admin"), await logged_in(cluster[0], "alice")
    assert await seen(alice) >= {"seen", "hidden"}
    denial = creation(TOPIC, "hidden", Operation.ALL, Permission.DENY)
    assert (await admin.ask(30, 3, creations=[denial])).results[0].error_code is ErrorCode.none
    assert "hidden" not in await seen(alice)
    any_: dict[str, Any] = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1}
    found = await admin.ask(29, 3, **any_, permission_type=1)
    entries = {(r.resource_name, a.permission_type) for r in found.resources for a in r.acls}
    assert entries == {("*", Permission.ALLOW), ("hidden", Permission.DENY)}
    gone = await admin.ask(31, 3, filters=[{**any_, "permission_type": Permission.DENY}])
    assert [a.resource_name for r in gone.filter_results for a in r.matching_acls] == ["hidden"]
    assert "hidden" in await seen(alice)


async def test_entries_that_cannot_be_are_refused_beside_others(cluster: list[Node]) -> None:
    admin = await logged_in(cluster[1], "admin")
    good = creation(TOPIC, "t", Operation.READ)
    wrong: list[dict[str, Any]] = [
        {"resource_type": 0}, {"resource_type": 1}, {"resource_type": 99},
        {"resource_pattern_type": 2}, {"operation": 1}, {"operation": 99},
        {"permission_type": 1}, {"permission_type": 0}, {"resource_name": ""},
        {"principal": "alice"}, {"resource_type": 4, "resource_name": "other"},
    ]  # fmt: skip
    told = await admin.ask(30, 3, creations=[{**good, **it} for it in wrong] + [good, good])
    codes = [it.error_code for it in told.results]
    assert codes == [ErrorCode.invalid_request] * len(wrong) + [ErrorCode.none] * 2
    await until(lambda: len(parts(cluster[1]).metadata.image.acls) == 1)
    (acl,) = parts(cluster[1]).metadata.image.acls.values()
    assert acl == Acl(
        kind=TOPIC, name="t", pattern=PatternType.LITERAL, principal="User:alice", host="*",
        operation=Operation.READ, permission=Permission.ALLOW,
    )  # fmt: skip


async def test_without_an_authorizer_there_are_no_entries(tmp_path: Path) -> None:
    given = properties()
    del given["authorizer.class.name"], given["super.users"]
    async with running(tmp_path, 1, **given) as (node,):
        alice = await logged_in(node, "alice")
        told = await alice.ask(30, 3, creations=[creation(TOPIC, "t", Operation.READ)])
        disabled = ErrorCode.security_disabled
        assert [it.error_code for it in told.results] == [disabled]
        any_: dict[str, Any] = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1}
        assert (await alice.ask(29, 3, **any_, permission_type=1)).error_code is disabled
        told = await alice.ask(31, 3, filters=[{**any_, "permission_type": 1}])
        assert [it.error_code for it in told.filter_results] == [disabled]


async def test_a_node_needs_a_right_of_its_own_on_the_listener_of_voters(tmp_path: Path) -> None:
    async with running(tmp_path, 1, **properties()) as (node,):
        listener = parts(node).controller_listener
        codes = {}
        for name in ("node", "alice"):
            peer = await logged_in(node, name, f"127.0.0.1:{listener.port}")
            answer = await peer.ask(52, 2, cluster_id="another", topics=[])
            codes[name] = answer.error_code
        assert codes == {"node": ErrorCode.inconsistent_cluster_id, "alice": CLUSTER_DENIED}
        envelope = await logged_in(node, "alice", f"127.0.0.1:{listener.port}")
        forged = Principal(type="User", name="admin").to_bytes()
        data = codec.encode_request(
            codec.build_request(20, 5, topic_names=("t",)), correlation_id=1, client_id="x"
        )[4:]
        told = await envelope.ask(
            *(58, 0), request_data=data, request_principal=forged, client_host_address=b""
        )
        assert told.error_code is CLUSTER_DENIED


async def test_denials_are_told_and_a_flood_of_them_is_counted(
    cluster: list[Node], caplog: pytest.LogCaptureFixture
) -> None:
    alice = await logged_in(cluster[0], "alice")
    with caplog.at_level(logging.INFO, "broker.metadata.authorization"):
        names = [{"name": f"t{it}", "topic_id": None} for it in range(1_000)]
        await alice.ask(3, 12, topics=names)
        await alice.ask(3, 12, topics=None)
        lines = [it.getMessage() for it in caplog.records if "may not" in it.getMessage()]
        assert 0 < len(lines) <= 300  # a flood may lie in three seconds
        assert "User:alice" in lines[0]
        assert "t0" in lines[0]
        await until(lambda: "more requests were denied" in caplog.text)
    assert not any("seen" in it for it in lines)
