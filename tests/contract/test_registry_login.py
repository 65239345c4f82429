"""A real schema registry behind TLS that wants a user and a password: settings as documented."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import expect

from tests.support.browser import chromium, open_page
from tests.support.certificates import make_certificate
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.kafka_oracle import ready_admin
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.schema_registry import PASSWORD, USER, SchemaRegistryServer
from tests.support.store_builder import StoreBuilder

SCHEMA: Final = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
)
ID: Final = 7


@pytest.fixture(scope="module")
def server(
    registry_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SchemaRegistryServer]:
    assert registry_home.exists()
    with SchemaRegistryServer(tmp_path_factory.mktemp("registry")) as server:
        yield server


@pytest.fixture(scope="module")
def cluster(
    server: SchemaRegistryServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """One Avro value behind the id of its schema."""
    number = server.register("orders-value", SCHEMA)
    with LocalCluster(tmp_path_factory.mktemp("brokers"), brokers=1) as cluster:
        where: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap}
        admin = ready_admin(**where)
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(WAIT_S)
        producer = Producer(where)
        producer.produce("orders", b"\0" + number.to_bytes(4, "big") + bytes([2 * ID]))
        assert producer.flush(WAIT_S) == 0
        yield cluster


@pytest.fixture
def line(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)


def write_settings(server: SchemaRegistryServer, folder: Path, **others: str | None) -> None:
    """``partiscope.toml`` in the folder; None leaves a setting out."""
    (folder / "password").write_text(f"{PASSWORD}\n")
    given: dict[str, str | None] = {
        "url": server.url,
        "username": USER,
        "password_file": str(folder / "password"),
        "ssl_cafile": str(server.ca),
        **others,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in given.items() if value is not None]
    (folder / "partiscope.toml").write_text("\n".join(["[schema_registry]", *lines, ""]))


READ: Final = ("tail", "orders", "--offset", "earliest", "-e")


def test_a_value_is_decoded_with_user_password_file_and_ca(
    line: CommandLine, server: SchemaRegistryServer
) -> None:
    write_settings(server, line.folder)
    assert f'{{"id": {ID}}}' in line.run(*READ)


@pytest.mark.browser
def test_the_page_decodes_it_too(
    line: CommandLine,
    server: SchemaRegistryServer,
    cluster: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_settings(server, line.folder)
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(line.folder / "partiscope.toml"))
    rows = [{"cluster": CLUSTER_ID, "read_ms": 1, "leader": 1, "replicas": [1], "isr": [1],
             "min_isr": 1, "topic": "orders", "partition": 0}]  # fmt: skip
    StoreBuilder(tmp_path / "store").write({"partitions": rows})
    where = ("--bootstrap", cluster.bootstrap, "--bus", cluster.bootstrap)
    with PageServer(tmp_path / "store", *where) as page_server, chromium() as browser:
        page = open_page(browser, f"{page_server.url}/browse/orders?since=earliest", [])
        expect(page.locator("#browse-result")).to_contain_text(f'{{"id": {ID}}}')


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"username": None, "password_file": None}, "refuses us (HTTP 401)"),
        ({"password_file": "wrong"}, "token of schema_registry"),
        ({"ssl_cafile": None}, "self-signed certificate"),
        ({"ssl_cafile": "other"}, "self-signed certificate"),
        ({"url": "http"}, "does not answer"),
    ],
    ids=["nobody", "wrong password", "no CA", "another CA", "no TLS"],
)
def test_a_login_that_fails_says_why_beside_the_bytes(
    line: CommandLine, server: SchemaRegistryServer, others: dict[str, str | None], told: str
) -> None:
    (line.folder / "wrong").write_text("wrong\n")
    other, _ = make_certificate(line.folder, "stranger")
    known = {"wrong": str(line.folder / "wrong"), "other": str(other),
             "http": server.url.replace("https", "http")}  # fmt: skip
    given = {name: known.get(value or "", value) for name, value in others.items()}
    write_settings(server, line.folder, **given)
    said = line.run("browse", "orders", "--partition", "0", "--offset", "0")
    assert told in said
    assert PASSWORD not in said
    assert b64encode(f"{USER}:{PASSWORD}".encode()).decode() not in said
