"""Users whose credentials are records: founded, altered, logged in, and strangers among them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin._scram import ScramMechanism as Mechanism
from kio.schema.errors import ErrorCode

from broker.protocol.scram import ScramClient, ScramMechanism
from broker.server.node import Node
from tests.support.patience import WAIT_S
from tests.unit.broker.server.nodes import new_nodes, parts, replica, running, until
from tests.unit.broker.server.test_sasl import Stranger
from tests.unit.broker.server.test_tls import RECORDS, consumed, principals, produced

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def properties(mechanism: str = "SCRAM-SHA-256", **more: str) -> dict[str, str]:
    """Brokers and clients log in by SCRAM, brokers to voters by PLAIN."""
    jaas = f"listener.name.plaintext.{mechanism.lower()}.sasl.jaas.config"
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        jaas: f'{SCRAM} username="node" password="node-secret";',
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{PLAIN} username="node" password="p" user_node="p";'
        ),
        "partiscope.bootstrap.scram": (
            f"{mechanism}=[name=node,password=node-secret];"
            "SCRAM-SHA-256=[name=admin,password=admin-secret,iterations=8192]"
        ),
        **more,
    }


def client(
    node: Node, name: str, password: str, mechanism: str = "SCRAM-SHA-256"
) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


async def altered(admin: AdminClient, *changes: Any) -> None:
    for future in admin.alter_user_scram_credentials(list(changes)).values():
        await asyncio.to_thread(future.result, WAIT_S)


def upsertion(name: str, password: str, mechanism: Mechanism) -> UserScramCredentialUpsertion:
    info = ScramCredentialInfo(mechanism, 4_096)
    return UserScramCredentialUpsertion(name, info, password.encode())


async def refusals(node: Node, name: str, password: str, mechanism: str) -> list[Any]:
    """What comes at each step to one who does not get in."""
    stranger = await Stranger.at(node.address)
    await stranger.ask(17, 1, mechanism=mechanism)
    kind = next(it for it in ScramMechanism if it.label == mechanism)
    known = ScramClient(kind, name, password, "a-nonce")
    first = await stranger.ask(36, 2, auth_bytes=known.first())
    last = await stranger.ask(36, 2, auth_bytes=known.answer(bytes(first.auth_bytes)))
    assert await stranger.is_cut_off()
    challenge = dict(it.split("=", 1) for it in bytes(first.auth_bytes).decode().split(","))
    shape = len(challenge["s"]), challenge["i"], len(challenge["r"])
    return [first.error_code, shape, last.error_code, last.error_message, last.auth_bytes]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_brokers_and_clients_log_in_by_scram(tmp_path: Path, mechanism: str) -> None:
    replicas = {"offsets.topic.replication.factor": "1", "default.replication.factor": "2"}
    async with running(tmp_path, 2, **properties(mechanism, **replicas)) as nodes:
        admin = AdminClient(client(nodes[1], "admin", "admin-secret"))
        kind = Mechanism[mechanism.replace("-", "_")]
        await altered(admin, upsertion("alice", "alice-secret", kind))
        settings = client(nodes[0], "alice", "alice-secret", mechanism)
        await asyncio.to_thread(produced, settings)
        assert len(await asyncio.to_thread(consumed, settings)) == RECORDS
        logs = [replica(node, "orders").log for node in nodes]
        await until(lambda: [it.log_end_offset for it in logs] == [RECORDS, RECORDS])
        assert "node" in principals(nodes[0]) | principals(nodes[1])
        asked: Any = admin.describe_user_scram_credentials()
        described = await asyncio.to_thread(asked.result, WAIT_S)
        infos = {
            name: {it.mechanism: it.iterations for it in found.scram_credential_infos}
            for name, found in described.items()
        }
        assert infos == {
            "node": {kind: 4_096},
            "alice": {kind: 4_096},
            "admin": {Mechanism.SCRAM_SHA_256: 8_192},
        }


async def test_a_user_who_is_removed_gets_in_no_more_and_comes_back_after_a_restart(
    tmp_path: Path,
) -> None:
    given = properties()
    async with running(tmp_path, 1, **given) as (node,):
        admin = AdminClient(client(node, "admin", "admin-secret"))
        await altered(admin, upsertion("alice", "new", Mechanism.SCRAM_SHA_512))
        await altered(admin, UserScramCredentialDeletion("node", Mechanism.SCRAM_SHA_256))
        told = await refusals(node, "node", "node-secret", "SCRAM-SHA-256")
        assert told[2] is ErrorCode.sasl_authentication_failed
        config = {**node.config.properties}
    again = new_nodes(tmp_path, 1, **given)[0]
    again = type(again)(again.config.from_properties(config))
    try:
        await again.start(asyncio.Event())
        settings = client(again, "alice", "new", "SCRAM-SHA-512")
        found = await asyncio.to_thread(AdminClient(settings).list_topics, timeout=WAIT_S)
        assert len(found.brokers) == 1
        users = {name for _, name in parts(again).metadata.image.scram}
        assert users == {"admin", "alice"}  # the founders are not founded once more
    finally:
        await again.stop()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_stranger_hears_what_a_user_with_a_wrong_password_hears(
    tmp_path: Path, mechanism: str
) -> None:
    async with running(tmp_path, 1, **properties(mechanism)) as (node,):
        wrong = await refusals(node, "node", "wrong", mechanism)
        assert wrong[0] is ErrorCode.none
        assert wrong[2] is ErrorCode.sasl_authentication_failed
        assert mechanism in wrong[3]
        stranger = await refusals(node, "nobody", "wrong", mechanism)
        if mechanism == "SCRAM-SHA-256":  # admin has other iterations
            wrong[1] = stranger[1] = (wrong[1][0], "8192", wrong[1][2])
        assert stranger == wrong


async def test_a_stranger_meets_the_same_challenge_each_time(tmp_path: Path) -> None:
    async with running(tmp_path, 2, **properties()) as nodes:
        await until(lambda: len(parts(nodes[1]).metadata.image.scram) == 2)
        salts = set()
        for node in (*nodes, *nodes):
            stranger = await Stranger.at(node.address)
            await stranger.ask(17, 1, mechanism="SCRAM-SHA-256")
            told = await stranger.ask(36, 2, auth_bytes=b"n,,n=nobody,r=abc")
            salts.add(bytes(told.auth_bytes).split(b",s=")[1])
            stranger.writer.close()
        assert len(salts) == 1


@pytest.mark.parametrize(
    "token",
    [b"", b"\0admin\0admin-secret", b"y,,n=admin,r=abc", b"n,,n=admin,r=abc,tokenauth=true",
     b"n,a=node,n=admin,r=abc", b"c=biws,r=abc,p=AAAA"],
)  # fmt: skip
async def test_no_other_first_token_is_answered(tmp_path: Path, token: bytes) -> None:
    async with running(tmp_path, 1, **properties()) as (node,):
        stranger = await Stranger.at(node.address)
        await stranger.ask(17, 1, mechanism="SCRAM-SHA-256")
        told = await stranger.ask(36, 1, auth_bytes=token)
        assert told.error_code is ErrorCode.sasl_authentication_failed
        assert await stranger.is_cut_off()


async def test_a_proof_that_was_heard_lets_nobody_in_again(tmp_path: Path) -> None:
    async with running(tmp_path, 1, **properties()) as (node,):
        heard = ScramClient(ScramMechanism.SHA_256, "admin", "admin-secret", "abc")
        owner = await Stranger.at(node.address)
        await owner.ask(17, 0, mechanism="SCRAM-SHA-256")  # bare tokens follow
        first = heard.first()
        owner.writer.write(len(first).to_bytes(4, "big") + first)
        proof = heard.answer(await owner.frame())
        owner.writer.write(len(proof).to_bytes(4, "big") + proof)
        heard.check(await owner.frame())
        assert (await owner.ask(3, 12, topics=None)).brokers
        owner.writer.close()
        thief = await Stranger.at(node.address)
        await thief.ask(17, 1, mechanism="SCRAM-SHA-256")
        await thief.ask(36, 2, auth_bytes=first)
        told = await thief.ask(36, 2, auth_bytes=proof)
        assert told.error_code is ErrorCode.sasl_authentication_failed
        assert await thief.is_cut_off()
