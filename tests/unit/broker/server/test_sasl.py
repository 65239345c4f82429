"""Nodes that ask for a login: clients, brokers and voters, and who gets it wrong."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kio.schema.errors import ErrorCode

from broker.config.sasl import OwnLogin
from broker.protocol import codec
from broker.server.peers import PeerClient, PeerError
from tests.support.patience import WAIT_S
from tests.unit.broker.server.nodes import new_nodes, parts, replica, running, until
from tests.unit.broker.server.test_tls import RECORDS, client, consumed, principals, produced
from tests.unit.broker.server.test_tls import properties as tls_properties

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="{own}" user_node="node-secret" user_alice="alice-secret";'
)


def properties(protocol: str = "SASL_PLAINTEXT", own: str = "node-secret") -> dict[str, str]:
    """Everything behind a login."""
    return {
        "listener.security.protocol.map": f"PLAINTEXT:{protocol},CONTROLLER:{protocol}",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": JAAS.format(own=own),
        "listener.name.controller.plain.sasl.jaas.config": JAAS.format(own=own),
    }


def alice(password: str = "alice-secret") -> dict[str, Any]:
    return {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": password}


class Stranger:
    """A client that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def at(cls, address: str) -> "Stranger":
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def say(self, api_key: int, version: int, **fields: Any) -> None:
        message = codec.build_request(api_key, version, **fields)
        self.writer.write(codec.encode_request(message, correlation_id=1, client_id="x"))

    async def frame(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)

    async def ask(self, api_key: int, version: int, **fields: Any) -> Any:
        self.say(api_key, version, **fields)
        return codec.decode_response(api_key, version, await self.frame())[1]

    async def is_cut_off(self) -> bool:
        try:
            async with asyncio.timeout(WAIT_S):
                return await self._reader.read() == b""
        except ConnectionError:
            return True
        finally:
            self.writer.close()


async def test_clients_brokers_and_voters_log_in_over_tls(tmp_path: Path) -> None:
    replicas = {"offsets.topic.replication.factor": "1", "default.replication.factor": "2"}
    given = {**tls_properties(tmp_path, **replicas), **properties("SASL_SSL")}
    async with running(tmp_path / "data", 2, **given) as nodes:
        settings = {**client(tmp_path, nodes[0]), **alice(), "security.protocol": "SASL_SSL"}
        await asyncio.to_thread(produced, settings)
        assert len(await asyncio.to_thread(consumed, settings)) == RECORDS
        logs = [replica(node, "orders").log for node in nodes]
        await until(lambda: [it.log_end_offset for it in logs] == [RECORDS, RECORDS])
        assert "node" in principals(nodes[0]) | principals(nodes[1])


async def test_a_wrong_password_is_told_late_and_ends_the_connection(tmp_path: Path) -> None:
    async with running(tmp_path, 1, **properties()) as (node,):
        stranger = await Stranger.at(node.address)
        shaken = await stranger.ask(17, 1, mechanism="PLAIN")
        assert (shaken.error_code, tuple(shaken.mechanisms)) == (ErrorCode.none, ("PLAIN",))
        began_s = time.monotonic()
        told = await stranger.ask(36, 2, auth_bytes=b"\0alice\0wrong")
        assert told.error_code is ErrorCode.sasl_authentication_failed
        assert time.monotonic() - began_s >= 0.1
        assert await stranger.is_cut_off()
        settings = {
            "bootstrap.servers": node.address, "security.protocol": "SASL_PLAINTEXT",
            **alice("wrong"), "error_cb": lambda error: errors.append(error.str()),
        }  # fmt: skip
        errors: list[str] = []
        admin = AdminClient(settings)
        with pytest.raises(KafkaException):
            await asyncio.to_thread(admin.list_topics, timeout=2)

        def is_told() -> bool:
            admin.poll(0)
            return any("Invalid username or password" in it for it in errors)

        await until(is_told)


@pytest.mark.parametrize(
    "token",
    [b"", b"\0alice", b"\0\0alice-secret", b"\0alice\0", b"\xff\0alice\0alice-secret",
     b"node\0alice\0alice-secret", b"\0alice\0alice-secret\0", b"\0ALICE\0alice-secret"],
)  # fmt: skip
async def test_no_other_token_lets_in(tmp_path: Path, token: bytes) -> None:
    async with running(tmp_path, 1, **properties()) as (node,):
        stranger = await Stranger.at(node.address)
        await stranger.ask(17, 1, mechanism="PLAIN")
        told = await stranger.ask(36, 1, auth_bytes=token)
        assert told.error_code is ErrorCode.sasl_authentication_failed
        assert await stranger.is_cut_off()


async def test_before_a_login_nothing_else_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path, 1, **properties()) as (node,):
        asked = await Stranger.at(node.address)
        assert (await asked.ask(18, 0)).error_code is ErrorCode.none
        asked.say(3, 12, topics=None)
        assert await asked.is_cut_off()
        early = await Stranger.at(node.address)
        told = await early.ask(36, 2, auth_bytes=b"\0alice\0alice-secret")
        assert told.error_code is ErrorCode.sasl_authentication_failed
        assert await early.is_cut_off()
        other = await Stranger.at(node.address)
        shaken = await other.ask(17, 1, mechanism="GSSAPI")
        assert shaken.error_code is ErrorCode.unsupported_sasl_mechanism
        assert tuple(shaken.mechanisms) == ("PLAIN",)
        assert await other.is_cut_off()
        large = await Stranger.at(node.address)
        large.writer.write((1 << 20).to_bytes(4, "big"))
        assert await large.is_cut_off()


async def test_requests_behind_a_failed_login_are_not_handled(tmp_path: Path) -> None:
    """Sent at once with it, they wait for its end."""
    async with running(tmp_path, 1, **properties()) as (node,):
        stranger = await Stranger.at(node.address)
        stranger.say(17, 1, mechanism="PLAIN")
        stranger.say(36, 2, auth_bytes=b"\0alice\0wrong")
        stranger.say(3, 12, topics=None)
        await stranger.frame()
        await stranger.frame()
        assert await stranger.is_cut_off()


async def test_bare_tokens_follow_a_handshake_of_version_0(tmp_path: Path) -> None:
    async with running(tmp_path, 1, **properties()) as (node,):
        stranger = await Stranger.at(node.address)
        await stranger.ask(17, 0, mechanism="PLAIN")
        token = b"\0alice\0alice-secret"
        stranger.writer.write(len(token).to_bytes(4, "big") + token)
        assert await stranger.frame() == b""
        assert principals(node) >= {"alice"}
        assert (await stranger.ask(3, 12, topics=None)).brokers
        again = await stranger.ask(17, 1, mechanism="PLAIN")
        assert again.error_code is ErrorCode.illegal_sasl_state
        again = await stranger.ask(36, 2, auth_bytes=token)
        assert again.error_code is ErrorCode.illegal_sasl_state
        stranger.writer.close()


async def test_a_broker_with_a_wrong_password_does_not_join(tmp_path: Path) -> None:
    nodes = new_nodes(tmp_path, 2, **properties())
    wrong = new_nodes(tmp_path, 2, **properties(own="wrong"))[1]
    stopping = asyncio.Event()
    try:
        await nodes[0].start(asyncio.Event())
        voters = nodes[0].config.properties["controller.quorum.voters"]
        config = {**wrong.config.properties, "controller.quorum.voters": voters}
        late = type(wrong)(wrong.config.from_properties(config))
        starting = asyncio.create_task(late.start(stopping))
        await asyncio.sleep(1.0)
        assert set(parts(nodes[0]).metadata.image.brokers) == {101}
        stopping.set()
        await starting
        await late.stop()
    finally:
        await nodes[0].stop()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize("answer", [b"", b"\0\0\0\x05\0\0\0\x01\xff"], ids=["none", "nonsense"])
async def test_a_node_that_answers_no_login_loses_the_connection(
    answer: bytes, mechanism: str
) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read(4)
            writer.write(answer)
            await reader.read()
        ended.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    peer = PeerClient(
        host="127.0.0.1", port=port, login=OwnLogin(mechanism=mechanism, name="node", password="p")
    )
    with pytest.raises(PeerError):
        await peer.send(18, 0, codec.build_request(18, 0))
    async with asyncio.timeout(WAIT_S):
        await ended.wait()
    await peer.close()
    server.close()
