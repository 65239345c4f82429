"""Decoding is bounded in time, bytes and depth; a bad schema, field or message spoils no other."""

import io
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any, Final
from unittest.mock import Mock

import fastavro
import msgpack
import pytest

from control.kafka.records.schema_registry import ANSWER_BYTES_MAX, SchemaRegistry
from control.messages.decoding.decoder import Decoder
from control.messages.decoding.formats import Decoded, Format, Formats, jsonable
from control.messages.message_filters import FilterTexts, build_filter
from tests.support.cases import case
from tests.support.patience import patience_s
from tests.support.phrases import lacking
from tests.support.registry_of_texts import HANGS, RegistryOfTexts
from tests.unit.dashboard.pages.test_browse import record

FORBIDDEN, BROKEN, UNKNOWN, NULLS, NODE, TIMES, RICH, PROTO, NO_PROTO, WIDE = range(1, 11)
NO_JSON, HUGE = 11, 12
RICH_TYPE: Final = {
    "type": "record", "name": "Rich", "namespace": "shop", "fields": [
        {"name": "id", "type": "long"},
        {"name": "is_on", "type": "boolean"},
        {"name": "ratio", "type": "float"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20,
                                   "scale": 3}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["A", "B"]}},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 3}},
        {"name": "more", "type": {"type": "map", "values": ["null", "double", "Status"]}},
        {"name": "inner", "type": ["null", {"type": "array", "items": "Rich"}]},
        {"name": "raw", "type": "bytes"},
    ],
}  # fmt: skip
TIMES_TYPE: Final = {
    "type": "record", "name": "Times", "fields": [
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "name", "type": "string"},
    ],
}  # fmt: skip
NODE_TYPE: Final = {
    "type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}],
}  # fmt: skip
MESSAGE: Final = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order { int64 id = 1; uint64 big = 2; google.protobuf.Timestamp at = 3; string name = 4;
  google.protobuf.Int64Value wrapped = 5; repeated Order orders = 6; float ratio = 7; }"""


WIDE_MESSAGE: Final = "message Wide { repeated Wide wide = 1; {} }".replace(
    "{}", " ".join(f"optional int64 n{number} = {number};" for number in range(2, 202))
).replace("message", 'syntax = "proto3"; message', 1)


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryOfTexts]:
    schemas: dict[int, tuple[str, str] | int | bytes] = {
        FORBIDDEN: 403,
        BROKEN: 500,
        NO_JSON: b"<html>",
        HUGE: b"x" * (ANSWER_BYTES_MAX + 1),
        NULLS: ("AVRO", '{"type": "array", "items": "null"}'),
        NODE: ("AVRO", json.dumps(NODE_TYPE)),
        TIMES: ("AVRO", json.dumps(TIMES_TYPE)),
        RICH: ("AVRO", json.dumps(RICH_TYPE)),
        PROTO: ("PROTOBUF", MESSAGE),
        NO_PROTO: ("PROTOBUF", "message {"),
        WIDE: ("PROTOBUF", WIDE_MESSAGE),
    }
    with RegistryOfTexts(schemas) as server:
        yield server


@pytest.fixture
def registry(server: RegistryOfTexts) -> SchemaRegistry:
    server.asked.clear()
    return SchemaRegistry(server.settings)


def decoded(
    data: bytes, registry: SchemaRegistry | None = None, kind: Format = Format.AUTO
) -> Decoded:
    found = Decoder("orders", Formats(value=kind), registry).value(record(0, data))
    assert found is not None
    return found


def with_schema(number: int, content: bytes) -> bytes:
    return b"\0" + number.to_bytes(4) + content


def test_a_schema_that_is_forbidden_or_broken_blinds_no_other(
    registry: SchemaRegistry, server: RegistryOfTexts
) -> None:
    for number, status in ((FORBIDDEN, "403"), (BROKEN, "500")):
        for _ in range(5):
            found = decoded(with_schema(number, b"x"), registry)
            assert lacking(found.error, f"schemas/ids/{number}", f"HTTP {status}") == []
    assert decoded(with_schema(NULLS, b"\x04\0"), registry).document == [None, None]
    for number in (NO_JSON, HUGE):
        assert decoded(with_schema(number, b"x"), registry).error
    assert decoded(with_schema(TIMES, b"\0\0\0"), registry).error == ""
    assert decoded(with_schema(UNKNOWN, b"\xff"), registry).error == ""
    assert len(server.asked) == 7, "each schema is asked for once"


def test_a_schema_that_hangs_blinds_no_other_and_a_registry_that_hangs_rests() -> None:
    nulls = ("AVRO", '{"type": "array", "items": "null"}')
    schemas: dict[int, tuple[str, str] | int | bytes] = {1: HANGS, 2: HANGS, 3: 504, 4: nulls}
    schemas |= {5: nulls, 6: nulls, 7: nulls}
    with RegistryOfTexts(schemas) as server:
        registry = SchemaRegistry(replace(server.settings, timeout_s=patience_s(0.2)))

        def told(number: int) -> str:
            return decoded(with_schema(number, b"\x04\0"), registry).error

        for _ in range(2):
            assert ["does not answer" in told(number) for number in (1, 2, 3)] == [True] * 3
        assert told(4) == ""
        server.hangs.set()
        assert "does not answer" in told(5)
        assert lacking(told(6), "does not answer", "asked again in") == []
        assert told(4) == "", "it is kept"
        asked = [path.rpartition("/")[2] for path in server.asked]
        schemas_asked = [number for number in asked if number.isdecimal()]
        assert schemas_asked == ["1", "2", "3", "4", "5"], "each is asked for once"


@pytest.mark.parametrize(
    ("number", "content", "told"),
    [
        (NULLS, bytes.fromhex("808080801000"), "more than 200,000 values"),
        (NODE, b"\x02" * 8_000 + b"\0", "nested more than 200 deep"),
        (NODE, b"\x02" * 8_000, "nested more than 200 deep"),
        (NODE, b"\x04", "a union of 2 types"),
        (NODE, b"\x02\x02", "ends too early"),
        (PROTO, b"\0" + b"\x32\0" * 250_000, "more than 200,000 values"),
        (PROTO, b"\0" + b"\x32\xff", "do not fit"),
    ],
)
def test_what_claims_more_than_it_is_ends_at_a_bound(
    registry: SchemaRegistry, number: int, content: bytes, told: str
) -> None:
    decoded(with_schema(PROTO, b"\0"), registry)  # the first message of a schema compiles it
    found = decoded(with_schema(number, content), registry)
    assert lacking(found.error, told) == []
    assert found.format in (Format.HEX, Format.STRING)


def test_a_schema_that_does_not_compile_is_not_tried_for_each_message(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Mock(wraps=subprocess.run)
    monkeypatch.setattr(subprocess, "run", run)
    for _ in range(30):
        assert "does not compile" in decoded(with_schema(NO_PROTO, b"\0"), registry).error
    assert run.call_count == 1


def test_a_message_that_would_take_all_memory_is_not_read(registry: SchemaRegistry) -> None:
    found = decoded(with_schema(WIDE, b"\0" + b"\x0a\0" * 1_000_000), registry)
    assert "1 GiB" in found.error
    assert decoded(with_schema(WIDE, b"\0\x0a\0"), registry).error == ""


def test_a_protobuf_message_that_is_nested_deeply_says_so(registry: SchemaRegistry) -> None:
    content = b""
    for _ in range(150):
        content = b"\x32" + bytes((len(content) & 0x7F | 0x80, len(content) >> 7)) + content
    assert "nested" in decoded(with_schema(PROTO, b"\0" + content), registry).error


@pytest.mark.parametrize(
    ("data", "kind", "format_", "told"),
    [
        (b"[" * 100_000, Format.AUTO, Format.STRING, "nested more than 200 deep"),
        (b"[" * 500 + b"]" * 500, Format.AUTO, Format.STRING, "nested more than 200 deep"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, Format.JSON, Format.STRING, "200 deep"),
        (b"[" * 200 + b"]" * 200, Format.AUTO, Format.JSON, ""),
        (b'{"a": NaN}', Format.AUTO, Format.STRING, ""),
        (b'{"a": NaN}', Format.JSON, Format.STRING, "NaN"),
        (b'{"a": ' + b"9" * 5_000 + b"}", Format.AUTO, Format.JSON, ""),
        (b"\x91" * 100_000, Format.MSGPACK, Format.HEX, "StackError"),
        (b"\x91" * 500 + b"\xc0", Format.MSGPACK, Format.HEX, "200 deep"),
        (b"\xdd\xff\xff\xff\xff", Format.MSGPACK, Format.HEX, "exceeds"),
        (b"\xdd\0\4\0\0" + b"\x80" * (1 << 18), Format.MSGPACK, Format.HEX, "200,000 values"),
    ],
)
def test_deep_and_huge_documents_are_told(
    data: bytes, kind: Format, format_: Format, told: str
) -> None:
    found = decoded(data, kind=kind)
    assert found.format is format_
    assert told in found.error
    assert bool(told) is bool(found.error)


def test_a_date_beyond_every_calendar_leaves_only_its_field_raw(registry: SchemaRegistry) -> None:
    content = bytes.fromhex("feffffff0f") + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x04\xc3\xa9"
    found = decoded(with_schema(TIMES, content), registry)
    assert (found.error, found.document) == (
        "",
        {"day": 2**31 - 1, "at": 2**63 - 1, "name": "é"},
    )
    moments = msgpack.packb([msgpack.Timestamp(2**60, 0), msgpack.Timestamp(1, 0)])
    found = decoded(moments, kind=Format.MSGPACK)
    assert "1152921504606846976" in found.document[0]
    assert found.document[1] == "1970-01-01T00:00:01+00:00"
    at = b"\x1a\x0a\x08" + b"\x80" * 8 + b"\x10" + b"\x22\x01a"
    document = decoded(with_schema(PROTO, b"\0" + at), registry).document
    assert document["name"] == "a"
    assert document["at"]["seconds"] == 1 << 60


def test_text_that_is_none_leaves_only_its_field_raw(registry: SchemaRegistry) -> None:
    found = decoded(with_schema(TIMES, b"\0\0\x02\xff"), registry)
    assert found.document["name"] == {"base64": "/w=="}


def test_numbers_of_protobuf_are_compared_as_numbers(registry: SchemaRegistry) -> None:
    big = b"\x10" + b"\xff" * 9 + b"\x01"
    each = record(0, with_schema(PROTO, b"\0\x08\x0a" + big + b"\x2a\x02\x08\x07"))
    decoder = Decoder("orders", Formats(), registry)
    document = decoder.value(each)
    assert document is not None
    assert document.document == {
        "id": 10, "big": 2**64 - 1, "name": "", "wrapped": 7, "orders": [], "ratio": 0.0,
    }  # fmt: skip
    assert str(2**64 - 1) in document.text
    for text, wanted in (
        ("value.id > 9", True),
        ("value.id > 10", False),
        ("value.id == 10", True),
    ):
        found = build_filter(FilterTexts(cel=text), decoder)
        assert bool(found.passing([each])) is wanted
        assert found.unjudged_count == 0


def rich(dice: Random, depth: int = 0) -> dict[str, Any]:
    inner = [rich(dice, depth + 1) for _ in range(dice.randint(0, 2))] if depth < 2 else None
    return {
        "id": dice.choice((0, -1, 2**63 - 1, -(2**63), dice.getrandbits(40))),
        "is_on": dice.random() < 0.5,
        "ratio": dice.choice((0.5, -1e30, float("inf"), float("nan"))),
        "price": Decimal(dice.randint(-(10**9), 10**9)).scaleb(-3),
        "day": dice.randint(-700_000, 2_900_000),
        "at": dice.randint(-(10**16), 10**16),
        "clock": dice.randint(0, 86_399_999),
        "status": dice.choice("AB"),
        "mark": dice.randbytes(3),
        "more": {f"k{n}": dice.choice((None, 1.5, "B")) for n in range(dice.randint(0, 3))},
        "inner": inner,
        "raw": dice.choice((b"", "é".encode(), b"\xff\0")),
    }


def test_avro_is_read_as_another_reader_reads_it(registry: SchemaRegistry) -> None:
    parsed = fastavro.parse_schema(RICH_TYPE)
    for seed in range(60):
        with case(seed):
            content = io.BytesIO()
            fastavro.schemaless_writer(content, parsed, rich(Random(seed)))
            content.seek(0)
            wanted = jsonable_times(fastavro.schemaless_reader(content, parsed, None))
            found = decoded(with_schema(RICH, content.getvalue()), registry)
            assert (found.error, found.type_name) == ("", "shop.Rich")
            assert found.document == wanted


def jsonable_times(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: jsonable_times(each) for name, each in document.items()}
    if isinstance(document, list):
        return [jsonable_times(each) for each in document]
    return document.isoformat() if hasattr(document, "isoformat") else jsonable(document)
