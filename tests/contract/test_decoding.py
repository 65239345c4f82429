"""Decoding of what Confluent's own serializers write, with the schemas of a real registry."""

import json
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgpack
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from control.kafka.connection.settings import RegistrySettings
from control.kafka.records.schema_registry import SchemaRegistry
from control.messages.decoding.decoder import Decoder
from control.messages.decoding.formats import Decoded, Format, Formats
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.patience import WAIT_S
from tests.support.schema_registry import SchemaRegistryServer
from tests.unit.dashboard.pages.test_browse import record

ADDRESS = """{"type": "record", "name": "Address", "namespace": "shop",
  "fields": [{"name": "city", "type": "string"}]}"""
ORDER = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
  {"name": "id", "type": "long"},
  {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["PAID", "FAILED"]}},
  {"name": "price", "type":
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
  {"name": "note", "type": ["null", "string"], "default": null},
  {"name": "to", "type": "shop.Address"}]}"""
POINT = 'syntax = "proto3"; package geo; message Point { double x = 1; int64 y = 2; }'
ROUTE = """syntax = "proto3"; package geo;
import "point.proto"; import "google/protobuf/timestamp.proto";
message Other { string name = 1; }
message Route { string name = 1; repeated Point points = 2;
  google.protobuf.Timestamp at = 3; bool open = 4;
  message Inner { int32 depth = 1; } }"""
PERSON = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Person",
  "type": "object", "properties": {"age": {"type": "integer"}}}"""


@pytest.fixture(scope="module")
def server(registry_home: Path) -> Iterator[SchemaRegistryServer]:
    assert registry_home.exists()
    with SchemaRegistryServer() as server:
        yield server


@pytest.fixture(scope="module")
def client(server: SchemaRegistryServer) -> Iterator[Any]:
    with SchemaRegistryClient({"url": server.url}) as client:
        yield client


@pytest.fixture
def registry(server: SchemaRegistryServer) -> SchemaRegistry:
    return SchemaRegistry(RegistrySettings(url=server.url))


def decoded(
    data: bytes, registry: SchemaRegistry | None = None, kind: Format = Format.AUTO
) -> Decoded:
    found = Decoder("orders", Formats(value=kind), registry).value(record(0, data))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def order(client: Any) -> bytes:
    """An Avro message whose schema refers to another one."""
    client.register_schema("shop.Address", Schema(ADDRESS, "AVRO"))
    reference = SchemaReference("shop.Address", "shop.Address", 1)
    serializer = AvroSerializer(client, Schema(ORDER, "AVRO", [reference]))
    value = {
        "id": 1 << 40,
        "status": "FAILED",
        "price": Decimal("12.30"),
        "note": None,
        "to": {"city": "Köln"},
    }
    data = serializer(value, SerializationContext("orders", MessageField.VALUE))
    assert isinstance(data, bytes)
    return data


def test_avro_with_references_and_logical_types(order: bytes, registry: SchemaRegistry) -> None:
    found = decoded(order, registry)
    assert (found.format, found.type_name, found.error) == (Format.AVRO, "shop.Order", "")
    assert found.document == {
        "id": 1 << 40,
        "status": "FAILED",
        "price": "12.30",
        "note": None,
        "to": {"city": "Köln"},
    }
    assert json.loads(found.pretty) == found.document


def test_protobuf_with_imports_and_the_path_to_its_type(
    server: SchemaRegistryServer, registry: SchemaRegistry
) -> None:
    server.register("point", POINT, kind="PROTOBUF")
    reference = {"name": "point.proto", "subject": "point", "version": 1}
    number = server.register("route", ROUTE, kind="PROTOBUF", references=[reference])
    head = b"\0" + number.to_bytes(4)
    # Route is the second type: indexes [1]; then Route.Inner: [1, 0].
    route = b"\x0a\x01a" + b"\x12\x02\x10\x05" + b"\x1a\x04\x08\x80\xf4\x03"
    found = decoded(head + b"\x02\x02" + route, registry)
    assert (found.format, found.type_name, found.error) == (Format.PROTOBUF, "geo.Route", "")
    assert found.document == {
        "name": "a",
        "points": [{"x": 0.0, "y": 5}],
        "at": "1970-01-01T17:46:40Z",
        "open": False,
    }
    assert decoded(head + b"\x04\x02\x00" + b"\x08\x07", registry).document == {"depth": 7}
    wrong = decoded(head + b"\x02\x06", registry)
    assert "type at [3]" in wrong.error
    assert wrong.text == "0x" + (head + b"\x02\x06").hex() or wrong.format is Format.STRING


def test_json_behind_the_id_of_its_schema(client: Any, registry: SchemaRegistry) -> None:
    serializer = JSONSerializer(PERSON, client)
    data = serializer({"age": 3}, SerializationContext("people", MessageField.VALUE))
    assert isinstance(data, bytes)
    found = decoded(data, registry)
    assert (found.format, found.document) == (Format.JSON_SCHEMA, {"age": 3})
    assert found.type_name == "Person"


def test_what_cannot_be_decoded_is_shown_as_it_is_with_the_reason(
    order: bytes, registry: SchemaRegistry, server: SchemaRegistryServer
) -> None:
    cut = decoded(order[:8], registry)
    assert "do not fit schema" in cut.error
    assert cut.text == "0x" + order[:8].hex() or cut.format is Format.STRING
    unknown = b"\0\0\0\xff\xff\xff"
    assert decoded(unknown, registry).error == ""
    asked = decoded(unknown, registry, Format.AVRO)
    assert asked.error.startswith("not read as avro: schema 65535 ")
    assert "no schema registry" in decoded(order, None, Format.AVRO).error
    assert "avro, not protobuf" in decoded(order, registry, Format.PROTOBUF).error
    broken = server.register("broken", PERSON, kind="JSON")
    assert "do not fit" in decoded(b"\0" + broken.to_bytes(4) + b"{", registry).error


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b'{"a": 1.10000000000000000001}', Format.AUTO, '{"a": 1.10000000000000000001}'),
        (b"plain", Format.AUTO, "plain"),
        (b"\xff\x01", Format.AUTO, "0xff01"),
        (msgpack.packb({"a": [1, b"\xff"]}), Format.MSGPACK, '{"a": [1, {"base64": "/w=="}]}'),
        (b"\xff", Format.BASE64, "/w=="),
        (b"a", Format.HEX, "0x61"),
        (b'"a"', Format.JSON, '"a"'),
    ],
)
def test_formats_without_a_registry(data: bytes, kind: Format, text: str) -> None:
    found = decoded(data, kind=kind)
    assert (found.text, found.error) == (text, "")


@pytest.mark.parametrize("kind", [Format.JSON, Format.MSGPACK, Format.STRING, Format.AVRO])
def test_the_wrong_format_says_so(kind: Format) -> None:
    found = decoded(b"\xc1\xff", kind=kind)
    assert found.error.startswith(f"not read as {kind}: ")
    assert found.text == "0xc1ff"


def test_a_silent_registry_costs_its_timeout_once(order: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        settings = RegistrySettings(url=f"http://{host}:{port}", timeout_s=0.3)
        registry = SchemaRegistry(settings)
        started = time.monotonic()
        for _ in range(50):
            found = decoded(order, registry)
            assert f"{host}:{port} does not answer" in found.error
        assert time.monotonic() - started < 50 * settings.timeout_s / 2, (
            "it waited once, not 50 times"
        )
    gone = SchemaRegistry(RegistrySettings(url=f"http://127.0.0.1:{port}"))
    assert "Connection refused" in decoded(order, gone).error


def test_a_wrong_path_is_told_apart_from_an_unknown_id(
    server: SchemaRegistryServer, order: bytes
) -> None:
    wrong = server.url.replace("ccompat", "nothing")
    registry = SchemaRegistry(RegistrySettings(url=wrong))
    assert "HTTP 404: check the path" in decoded(order, registry).error


def test_filters_and_commands_see_decoded_values(
    server: SchemaRegistryServer, order: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with LocalCluster(tmp_path / "brokers", brokers=1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for created in admin.create_topics([NewTopic("orders", 1, 1)]).values():
            created.result(WAIT_S)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("orders", b"plain", key=b"k")
        producer.produce("orders", order, key=b"k", headers={"shop": b"7"})
        assert producer.flush(WAIT_S) == 0
        line = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
        base = ("tail", "orders", "--offset", "earliest", "-e", "--schema-registry", server.url)
        found = line.run(*base, "--cel", "value.to.city == 'Köln'")
        assert '"status": "FAILED"' in found
        place = ("browse", "orders", "--partition", "0", "--offset", "1")
        whole = line.run(*place, "--schema-registry", server.url)
        for words in ("CreateTime", "from offset 0", "header       shop: 7", "shop.Order"):
            assert words in whole
        told = line.json(*place, "--schema-registry", server.url)
        assert told["decoded"]["value"]["document"]["price"] == "12.30"
        assert told["value"] == {"base64": b64encode(order).decode()}
        line.run(*place, "--output", "value.bin")
        assert (tmp_path / "value.bin").read_bytes() == order
        wrong = line.run(*place, "--value-format", "xml", status=2)
        assert "'xml'" in wrong
        assert "auto, json, avro" in wrong
        user = line.run(*place, "--schema-registry", "http://u:p@127.0.0.1", status=2)
        assert "it holds a user" in user
