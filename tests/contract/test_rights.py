"""Who may do nothing, or little, hears the same from three brokers of ours and from Kafka, of every
API; and Kafka's own tool manages entries on ours.
"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import pytest
from kio.schema.errors import ErrorCode

from broker.handlers.registry import load_registry
from broker.handlers.services import Listener
from broker.protocol import codec
from tests.support.cases import case
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.kafka_oracle import START_TIMEOUT_S, KafkaCluster, run_tool
from tests.support.node_cluster import NodeCluster
from tests.support.patience import patience_s
from tests.support.rights_cases import CASES, PARTLY, RIGHTS, STANDARD, creation
from tests.support.settle import wait_until

PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS: Final = " ".join(f'user_{name}="s"' for name in ("node", "admin", "alice", "bob"))
JAAS: Final = f'{PLAIN} username="node" password="s" {USERS};'
SECURED: Final = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
    "authorizer.class.name": STANDARD,
    "super.users": "User:node;User:admin;User:ANONYMOUS",
}
OPEN: Final = {17, 18, 36}
TOPICS: Final = {"seen", "hidden", "__consumer_offsets", "__transaction_state"}


class Client:
    """One who has logged in."""

    def __init__(self, address: str, name: str) -> None:
        host, _, port = address.rpartition(":")
        self._sock = socket.create_connection((host, int(port)), timeout=patience_s(30))
        self.ask(17, 1, mechanism="PLAIN")
        told = self.ask(36, 2, auth_bytes=f"\0{name}\0s".encode())
        assert told.error_code is ErrorCode.none, told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def ask(self, api_key: int, version: int, **fields: Any) -> Any:
        message = codec.build_request(api_key, version, **fields)
        self._sock.sendall(codec.encode_request(message, correlation_id=1, client_id="x"))
        size = int.from_bytes(self._read(4), "big")
        return codec.decode_response(api_key, version, self._read(size))[1]

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._sock.recv(count - len(data))
            assert piece, "the broker closed the connection"
            data += piece
        return data


class _Secured(NodeCluster):
    """Nodes that nobody meets without a login."""

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        def knows_all(address: str) -> bool:
            try:
                with Client(address, "admin") as admin:
                    brokers = admin.ask(3, 12, topics=()).brokers
            except (OSError, AssertionError):
                return False
            return {int(it.node_id) for it in brokers} == set(self.processes)

        for address in self.bootstrap.split(","):
            wait_until(
                lambda at=address: knows_all(at),  # type: ignore[misc]
                f"{address} knows all",
                timeout_s=timeout_s,
                story=self.story,
            )


@dataclass
class OurSecured(_Secured, LocalCluster):
    """Of ours."""


@dataclass
class KafkaSecured(_Secured, KafkaCluster):
    """Of Kafka."""


@pytest.fixture(
    params=[
        pytest.param(False, id="ours"),
        pytest.param(True, id="kafka", marks=pytest.mark.kafka_oracle),
    ],
    scope="module",
)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeCluster]:
    """Three brokers, with the topics ``seen`` and ``hidden``."""
    folder = tmp_path_factory.mktemp("secured")
    if request.param:
        request.getfixturevalue("kafka_libs")
        made: NodeCluster = KafkaSecured(folder, overrides=SECURED)
    else:
        made = OurSecured(folder, overrides={**NOBODY_DIES, **SECURED})
    with made as cluster:
        addresses = cluster.bootstrap.split(",")
        topics = [
            {"name": it, "num_partitions": 1, "replication_factor": 3} for it in ("seen", "hidden")
        ]
        with Client(addresses[0], "admin") as admin:
            told = admin.ask(19, 7, topics=topics, timeout=30_000).topics
            assert {it.error_code for it in told} == {ErrorCode.none}
            for kind, key in ((0, "g"), (1, "t")):
                wait_until(lambda: _coordinator(admin, kind, key) >= 0, key)  # noqa: B023
        for address in addresses:
            wait_until(lambda at=address: _has_producer_ids(at), "producer ids")  # type: ignore[misc]
            wait_until(lambda at=address: _seen(at, "admin") >= TOPICS, "all topics")  # type: ignore[misc]
        yield cluster


def _coordinator(admin: Client, key_type: int, key: str) -> int:
    (found,) = admin.ask(10, 4, key_type=key_type, coordinator_keys=(key,)).coordinators
    return int(found.node_id)


def _has_producer_ids(address: str) -> bool:
    with Client(address, "admin") as admin:
        told = admin.ask(22, 4, transactional_id=None, transaction_timeout=1_000)
    return told.error_code is ErrorCode.none


def _seen(address: str, name: str) -> set[str]:
    with Client(address, name) as client:
        return {str(it.name) for it in client.ask(3, 12, topics=None).topics}


def test_without_a_right_every_api_tells_the_same(secured: NodeCluster) -> None:
    assert {key for key, *_ in CASES} | OPEN == {
        it.api_key for it in load_registry(Listener.CLIENT).apis()
    }
    with Client(secured.bootstrap.split(",")[0], "bob") as bob:
        for key, version, fields, found, expected in CASES:
            with case(key, version, fields):
                told = found(bob.ask(key, version, **fields))
                assert sorted(told, key=repr) == sorted(expected, key=repr)


def test_with_some_rights_the_rest_stays_hidden(secured: NodeCluster) -> None:
    first, *_ = addresses = secured.bootstrap.split(",")
    with Client(first, "admin") as admin:
        made = admin.ask(30, 3, creations=[creation(*it) for it in RIGHTS])
        assert {it.error_code for it in made.results} == {ErrorCode.none}
        wait_until(
            lambda: all(_seen(it, "alice") == {"seen"} for it in addresses), "rights everywhere"
        )
        coordinator = _coordinator(admin, 0, "g")
        transactions = _coordinator(admin, 1, "t")
        leader = admin.ask(3, 12, topics=[{"name": "seen", "topic_id": None}])
        at = {int(it.node_id): f"127.0.0.1:{it.port}" for it in leader.brokers}
    by_key = {8: coordinator, 9: coordinator, 24: transactions}
    for key, version, fields, found, expected in PARTLY:
        with case(key, version, fields):
            broker = by_key.get(key, int(leader.topics[0].partitions[0].leader_id))
            with Client(at[broker], "alice") as alice:
                told = found(alice.ask(key, version, **fields))
            assert sorted(told, key=repr) == sorted(expected, key=repr)


WRONG: Final[list[dict[str, Any]]] = [
    {"resource_name": ""},
    {"resource_type": 4, "resource_name": "other"},
]


def test_entries_that_cannot_be(secured: NodeCluster) -> None:
    good = creation(*RIGHTS[0])
    with Client(secured.bootstrap.split(",")[0], "admin") as admin:
        for wrong in WRONG:
            with case(wrong):
                told = admin.ask(30, 3, creations=[{**good, **wrong}])
                assert [it.error_code for it in told.results] == [ErrorCode.invalid_request]


@pytest.mark.kafka_oracle
def test_kafkas_tool_manages_entries_of_ours(tmp_path: Path, kafka_libs: Path) -> None:
    assert kafka_libs.exists()
    config = tmp_path / "admin.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} username="admin" password="s";\n'
    )
    with OurSecured(tmp_path / "nodes", overrides={**NOBODY_DIES, **SECURED}) as cluster:
        base = ("--bootstrap-server", cluster.bootstrap, "--command-config", str(config))
        tool = "org.apache.kafka.tools.AclCommand"
        entry = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
        done = run_tool(tool, *base, "--add", *entry, "--resource-pattern-type", "prefixed")
        assert done.returncode == 0, done.stdout + done.stderr
        done = run_tool(tool, *base, "--list")
        assert "name=orders, patternType=PREFIXED" in done.stdout
        assert "principal=User:alice, host=*, operation=READ" in done.stdout
        removed = (*entry, "--resource-pattern-type", "prefixed", "--force")
        done = run_tool(tool, *base, "--remove", *removed)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "User:alice" not in run_tool(tool, *base, "--list").stdout
