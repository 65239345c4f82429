"""A hostile registry or schema costs the one answer: nothing ends, hangs, or is asked for again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from threading import Thread
from typing import Any, Final

import pytest

from control.kafka.connection.settings import RegistrySettings
from control.kafka.records.schema_registry import (
    ANSWER_BYTES_MAX,
    WORDS_MAX,
    Reference,
    RegistryError,
    Schema,
    SchemaKind,
    SchemaRegistry,
)
from control.messages.decoding.decoder import Decoder
from control.messages.decoding.formats import BoundError, Decoded
from control.messages.decoding.schemas import NAME_MAX, SchemaError, decode_with
from control.views.messages.details import decoded_words
from control.views.printable import json_text
from tests.support.patience import WAIT_S, patience_s
from tests.support.raw_registry import RawRegistry
from tests.support.registry_of_texts import RegistryOfTexts
from tests.unit.dashboard.pages.test_browse import record

AVRO, PROTO, JSON = SchemaKind.AVRO, SchemaKind.PROTOBUF, SchemaKind.JSON
MESSAGE: Final = 'syntax = "proto3"; message M { int64 id = 1; }'
OTHER: Final = 'syntax = "proto3"; message R { int64 id = 1; }'


def read(kind: SchemaKind, text: str, content: bytes, names: Sequence[str] = ()) -> Decoded:
    references = tuple(Reference(name=name, text=OTHER) for name in names)
    schema = Schema(schema_id=7, kind=kind, text=text, references=references)
    return decode_with(schema, b"\0\0\0\0\7" + content)


def nested(before: str, after: str, depth: int) -> str:
    return before * depth + '"null"' + after * depth


def chain(count: int) -> str:
    """Types of which each holds the one before ten times."""
    types: list[dict[str, Any]] = [{"type": "record", "name": "R0", "fields": []}]
    for number in range(1, count):
        fields = [{"name": f"f{n}", "type": f"R{number - 1}"} for n in range(10)]
        types.append({"type": "record", "name": f"R{number}", "fields": fields})
    return json.dumps(types)


@pytest.mark.parametrize(
    ("kind", "text", "content", "told"),
    [
        (AVRO, nested('{"type": "array", "items": ', "}", 900), b"\2" * 900, "200 deep"),
        (AVRO, nested('{"type":', "}", 100_000), b"", "200 deep"),
        (AVRO, chain(60), b"\x76", "200,000 values"),
        (AVRO, '{"type":"record","name":"N","fields":[{"name":"n","type":"N"}]}', b"", "200 deep"),
        (AVRO, json.dumps("x" * ANSWER_BYTES_MAX), b"", "no Avro schema"),
        (AVRO, '"N"', b"", "no Avro schema"),
        (AVRO, "", b"", "no Avro schema"),
        (AVRO, "5", b"", "no Avro schema"),
        (AVRO, "NaN", b"", "no Avro schema"),
        (AVRO, '{"type": "enum", "name": "E"}', b"\0", "no Avro schema"),
        (AVRO, '{"type": "record", "name": "N", "fields": 5}', b"", "no Avro schema"),
        (AVRO, '{"type": "bytes", "logicalType": []}', b"\2a", "no Avro schema"),
        (AVRO, '"\\ud800"', b"", "no Avro schema"),
        (AVRO, '{"type": "fixed", "name": "F", "size": "x"}', b"a", "do not fit"),
        (AVRO, '{"type": "fixed", "name": "F", "size": -1}', b"a", "do not fit"),
        (PROTO, "x" * 100_000, b"\0", "does not compile"),
        (PROTO, 'syntax = "proto3";' + "message M {" * 3_000, b"\0", "does not compile"),
        (PROTO, f'{MESSAGE} import "/etc/passwd";', b"\0", "does not compile"),
        (PROTO, "", b"\0", "do not fit"),
        (PROTO, f"{MESSAGE}\ud800", b"\0", "surrogates"),
        (JSON, "{}", '{"a": 1}'.encode("utf-16"), "do not fit"),
        (JSON, "{}", b"[" * 100_000, "200 deep"),
    ],
)  # fmt: skip
def test_a_hostile_schema_is_a_schema_error(
    kind: SchemaKind, text: str, content: bytes, told: str
) -> None:
    for _ in range(2):
        with pytest.raises((SchemaError, BoundError)) as raised:
            read(kind, text, content)
        assert told in str(raised.value)
        assert len(str(raised.value)) <= WORDS_MAX + 1
        assert str(raised.value).encode(errors="strict")
        assert "/tmp" not in str(raised.value)


@pytest.mark.parametrize(
    "names",
    [
        ("",), (".",), ("..",), ("a/../b",), ("a//b",), ("/etc/x",), ("a/",), ("x" * 300,),
        ("/".join(["x" * 200] * 40),), ("a", "a/b"), ("a/b", "a"), ("a\0b",), ("a\ud800",),
    ],
)  # fmt: skip
def test_a_reference_without_a_files_name_is_a_schema_error(names: tuple[str, ...]) -> None:
    for _ in range(2):
        with pytest.raises(SchemaError, match="schema 7 refers to") as raised:
            read(PROTO, MESSAGE, b"\0", names)
        assert len(str(raised.value)) <= WORDS_MAX + 1
    assert read(PROTO, MESSAGE, b"\0", ("a/b", "a/c", "schema-7.proto")).document == {"id": 0}


@pytest.mark.parametrize(
    ("kind", "text", "content", "document"),
    [
        *(
            (
                PROTO,
                f'syntax = "proto3"; package google.protobuf; message {name} {{ string a = 1; }}',
                b"\0\x0a\1x",
                {"a": "x"},
            )
            for name in ("Any", "Timestamp", "Struct", "StringValue")
        ),
        (AVRO, '{"type": "record", "name": "\\u001b[2J", "fields": []}', b"", {}),
        (AVRO, json.dumps({"type": "record", "name": "N" * 10_000, "fields": []}), b"", {}),
        (
            AVRO,
            '{"type": "record", "name": "N", "fields": [{"name": "\\ud800", "type": "null"}]}',
            b"",
            {"\ud800": None},
        ),
        (JSON, json.dumps({"title": "T" * 10_000}), b"[]", []),
        (JSON, '{"title": "\\ud800"}', b"[]", []),
        (JSON, '{"title": ' + "[" * 150 + "]" * 150 + "}", b"[]", []),
        (JSON, "[" * 100_000, b"[]", []),
    ],
)
def test_a_schema_with_odd_names_decodes_and_is_shown(
    kind: SchemaKind, text: str, content: bytes, document: Any
) -> None:
    found = read(kind, text, content)
    assert found.document == document
    assert len(found.label.encode(errors="strict")) <= NAME_MAX + 30
    assert json.loads(found.text.encode(errors="strict")) == document
    assert json_text(found.document).encode(errors="strict")
    assert decoded_words(found).encode(errors="strict")


def test_digits_behind_a_json_schema_stay_as_written() -> None:
    content = b'{"a": 1.10, "b": ' + b"9" * 5_000 + b"}"
    assert read(JSON, "{}", content).text == content.decode()


DRIPS: Final = {
    "status": (b"HTTP/1.1 200 ", b"x"),
    "head": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "heads": (b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
    "body without a length": (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "continues": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "https": (b"\x16\x03\x03\x40\x00", b"x"),
}


@pytest.mark.parametrize("drip", DRIPS)
def test_an_answer_that_drips_ends_at_the_deadline(drip: str) -> None:
    told: list[str] = []
    with RawRegistry(*DRIPS[drip]) as server:
        settings = replace(server.settings, timeout_s=patience_s(0.1))
        if drip == "https":
            settings = replace(settings, url=settings.url.replace("http", "https"))
        registry = SchemaRegistry(settings)

        def ask() -> None:
            with pytest.raises(RegistryError) as raised:
                registry.schema(1)
            told.append(str(raised.value))

        asking = Thread(target=ask, daemon=True)
        asking.start()
        asking.join(WAIT_S)
    assert len(told) == 1
    assert ("does not answer" if drip == "heads" else "takes too long") in told[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xfe\r\n\r\n",
        b"HTTP/1.1 ",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 1_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
    ],
)
def test_an_answer_that_is_no_http_is_a_registry_error(answer: bytes) -> None:
    with RawRegistry(answer) as server:
        registry = SchemaRegistry(replace(server.settings, timeout_s=WAIT_S))
        for _ in range(3):
            with pytest.raises(RegistryError) as raised:
                registry.schema(1)
            assert len(str(raised.value)) <= WORDS_MAX + 1
    assert server.asked_count == 1


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_registry_at_no_host_is_a_registry_error(host: str) -> None:
    registry = SchemaRegistry(RegistrySettings(url=f"http://{host}:8081"))
    with pytest.raises(RegistryError, match="does not answer"):
        registry.schema(1)


def answer_of(references: Any, **others: Any) -> bytes:
    return json.dumps({"schema": '"null"', "references": references, **others}).encode()


BAD: Final[Sequence[bytes]] = (
    b'{"schema": 5}',
    b'{"schema": ' + b"[" * 100_000,
    b'{"schema": "x", "schemaType": ' + b"[" * 500 + b"]" * 500 + b"}",
    answer_of([], schemaType=["AVRO"]),
    answer_of([], schemaType="x" * 1_000_000),
    answer_of(5),
    answer_of([5]),
    answer_of({"name": "a"}),
    answer_of([{"name": ["a"], "subject": "a", "version": 1}]),
    answer_of([{"name": "a", "subject": "..", "version": 1}]),
    answer_of([{"name": "a", "subject": "\ud800", "version": 1}]),
    answer_of([{"name": "a", "subject": "a", "version": {}}]),
    answer_of([{"name": "a", "subject": "a", "version": 90}]),
    answer_of([{"name": f"n{n}", "subject": "a", "version": 91} for n in range(3)]),
)


def test_an_answer_that_is_no_schema_spoils_no_other() -> None:
    half = answer_of([], filling="x" * (ANSWER_BYTES_MAX // 2))
    circle = answer_of([{"name": "c", "subject": "c", "version": 92}])
    schemas: dict[int, tuple[str, str] | int | bytes] = {91: half, 92: circle}
    schemas |= {90: b'{"schema": 5}', 93: ("AVRO", '"int"')}
    schemas |= dict(enumerate(BAD, 1))
    with RegistryOfTexts(schemas) as server:
        decoder = Decoder(
            "orders", None, SchemaRegistry(replace(server.settings, timeout_s=WAIT_S))
        )

        def decoded(number: int) -> Decoded:
            found = decoder.value(record(0, b"\0" + number.to_bytes(4) + b"\2"))
            assert found is not None
            return found

        assert decoded(93).document == 1
        for number, answer in enumerate(BAD, 1):
            for _ in range(2):
                error = decoded(number).error
                assert error, answer[:100]
                assert len(error) <= WORDS_MAX + 1
            assert sum(path.endswith(f"/ids/{number}") for path in server.asked) == 1
        assert "left over" in decoded(92).error, "a circle of references ends"
        assert decoded(93).error == ""
