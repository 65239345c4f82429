"""Nodes over TLS: clients, brokers and voters, with and without certificates of their own."""

import asyncio
import logging
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from broker.server.node import Node
from broker.server.tls import HANDSHAKE_TIMEOUT_S, HANDSHAKES_MAX, distinguished_name
from tests.support.certificates import make_certificate
from tests.support.patience import WAIT_S
from tests.unit.broker.server.nodes import new_nodes, parts, replica, running, until

RECORDS = 2_000


def properties(folder: Path, **more: str) -> dict[str, str]:
    """Everything over TLS; the nodes trust themselves and the client alice."""
    cert, both = make_certificate(folder, "node")
    alice, _ = make_certificate(folder, "alice")
    trusted = folder / "trusted.pem"
    trusted.write_text(cert.read_text() + alice.read_text())
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        **more,
    }


def client(folder: Path, node: Node, **more: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.address,
        "security.protocol": "SSL",
        "ssl.ca.location": str(folder / "node.pem"),
        **more,
    }


def produced(settings: dict[str, Any]) -> None:
    producer = Producer(settings)
    for number in range(RECORDS):
        producer.produce("orders", value=b"%06d" % number * 100)
    assert producer.flush(WAIT_S) == 0


def consumed(settings: dict[str, Any]) -> list[bytes]:
    consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found: list[bytes] = []
    until_s = time.monotonic() + WAIT_S
    while len(found) < RECORDS and time.monotonic() < until_s:
        found += [it.value() or b"" for it in consumer.consume(500, 1.0) if not it.error()]
    consumer.close()
    return found


def principals(node: Node) -> set[str]:
    """Of the connections that are open."""
    opened = parts(node).client_listeners.connections
    return {it._dispatcher._requests.principal.name for it in opened}


async def shown(port: int) -> bytes | None:
    """The certificate that a client meets there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    session: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.close()
    return session.getpeercert(binary_form=True)


async def first_byte(port: int, context: ssl.SSLContext) -> bytes:
    """What comes to a client that says nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        return await reader.readexactly(1)
    finally:
        writer.close()


async def test_clients_and_brokers_talk_over_tls(tmp_path: Path) -> None:
    replicas = {"offsets.topic.replication.factor": "1", "default.replication.factor": "2"}
    async with running(tmp_path / "data", 2, **properties(tmp_path, **replicas)) as nodes:
        settings = client(tmp_path, nodes[0])
        await asyncio.to_thread(produced, settings)
        found = await asyncio.to_thread(consumed, settings)
        assert found == [b"%06d" % number * 100 for number in range(RECORDS)]
        logs = [replica(node, "orders").log for node in nodes]
        await until(lambda: [it.log_end_offset for it in logs] == [RECORDS, RECORDS])


async def test_a_client_is_who_its_certificate_says(tmp_path: Path) -> None:
    rules = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/"}
    async with running(tmp_path / "data", 1, **properties(tmp_path, **rules)) as nodes:
        port = int(nodes[0].address.rpartition(":")[2])
        context = ssl.create_default_context(cafile=str(tmp_path / "node.pem"))
        context.load_cert_chain(tmp_path / "alice-both.pem")
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        await until(lambda: "alice" in principals(nodes[0]))
        writer.close()
        make_certificate(tmp_path, "mallory")
        for chain in (None, tmp_path / "mallory-both.pem"):
            context = ssl.create_default_context(cafile=str(tmp_path / "node.pem"))
            if chain is not None:
                context.load_cert_chain(chain)
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await first_byte(port, context)


async def test_who_speaks_no_tls_is_refused_and_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path / "data", 1, **properties(tmp_path)) as nodes:
        port = int(nodes[0].address.rpartition(":")[2])
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\0\0\0\x10nonsense")
            await reader.read()  # an alert, or nothing
            writer.close()
        told = [m for m in caplog.messages if "TLS handshake" in m]
        assert 1 <= len(told) < 10
        assert await shown(port)


class Counted(dict[Any, None]):
    """Tells how many it has had at once."""

    most = 0

    def __setitem__(self, key: Any, value: None) -> None:
        super().__setitem__(key, value)
        self.most = max(self.most, len(self))


async def test_handshakes_that_stand_still_keep_nobody_out(tmp_path: Path) -> None:
    async with running(tmp_path / "data", 1, **properties(tmp_path)) as (node,):
        port = int(node.address.rpartition(":")[2])
        server = parts(node).client_listeners
        server._handshakes = counted = Counted()
        opening = (asyncio.open_connection("127.0.0.1", port) for _ in range(2 * HANDSHAKES_MAX))
        silent = await asyncio.gather(*opening)
        await until(lambda: len(server._handshakes) == HANDSHAKES_MAX)
        assert counted.most == HANDSHAKES_MAX
        began_s = time.monotonic()
        assert await shown(port)
        assert time.monotonic() - began_s < HANDSHAKE_TIMEOUT_S
        ended = [reader for reader, _ in silent if reader.at_eof()]
        assert len(ended) >= HANDSHAKES_MAX, "the oldest are ended"
        for _, writer in silent:
            writer.close()
        await until(lambda: not server._handshakes)


async def test_a_renewed_certificate_serves_the_next_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path / "data", 1, **properties(tmp_path)) as nodes:
        port = int(nodes[0].address.rpartition(":")[2])

        first = await shown(port)
        good = (tmp_path / "node-both.pem").read_text()
        (tmp_path / "node-both.pem").write_text("nonsense")
        with caplog.at_level(logging.ERROR):
            async with asyncio.timeout(WAIT_S):
                while not [m for m in caplog.messages if "stay those of before" in m]:
                    assert await shown(port) == first
        make_certificate(tmp_path, "node")
        assert (tmp_path / "node-both.pem").read_text() != good
        async with asyncio.timeout(WAIT_S):
            while await shown(port) == first:
                pass


def test_files_that_cannot_be_used_end_the_start(tmp_path: Path) -> None:
    given = properties(tmp_path)
    for path, story in (
        (str(tmp_path), "directory"),
        (str(tmp_path / "none.pem"), "no such file"),
        (str(tmp_path / "node.pem"), "a private key"),
    ):
        (node,) = new_nodes(tmp_path / "data", 1, **{**given, "ssl.keystore.location": path})
        with pytest.raises(Exception, match=story) as told:
            asyncio.run(node.start(asyncio.Event()))
        assert "ssl.keystore.location" in str(told.value)


def test_the_name_of_a_certificate_is_written_as_kafka_does() -> None:
    subject = (
        (("countryName", "CH"),),
        (("organizationName", "Example, Inc."),),
        (("organizationalUnitName", "Ops"), ("localityName", "Bern")),
        (("commonName", " alice"),),
    )
    assert distinguished_name({"subject": subject}) == (
        "CN=\\ alice,OU=Ops+L=Bern,O=Example\\, Inc.,C=CH"
    )
