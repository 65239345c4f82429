"""Fifty messages of a hostile producer: deep, huge, lies and bombs in every format; and their
schemas."""

import json
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.patience import WAIT_S
from tests.unit.control.messages.test_decoding_bounds import (
    BROKEN,
    FORBIDDEN,
    MESSAGE,
    NODE,
    NODE_TYPE,
    NULLS,
    PROTO,
    TIMES,
    TIMES_TYPE,
    UNKNOWN,
    with_schema,
)

JSON_SCHEMA: Final = 20
BOMB_BYTES: Final = 12 << 20
SCHEMAS: Final[Mapping[int, tuple[str, str] | int]] = {
    FORBIDDEN: 403,
    BROKEN: 500,
    NULLS: ("AVRO", '{"type": "array", "items": "null"}'),
    NODE: ("AVRO", json.dumps(NODE_TYPE)),
    TIMES: ("AVRO", json.dumps(TIMES_TYPE)),
    PROTO: ("PROTOBUF", MESSAGE),
    JSON_SCHEMA: ("JSON", '{"title": "Odd", "type": "object"}'),
}


def _proto_nested(depth: int) -> bytes:
    content = b""
    for _ in range(depth):
        content = b"\x32" + bytes((len(content) & 0x7F | 0x80, len(content) >> 7)) + content
    return b"\0" + content


def hostile() -> list[tuple[bytes | None, str]]:
    """Values, and what must be told of each."""
    found: list[tuple[bytes | None, str]] = [
        (with_schema(NULLS, bytes.fromhex("808080801000")), "200,000 values"),
        (with_schema(NULLS, bytes.fromhex("ffffffffffffffffff0100")), "200,000 values"),
        (with_schema(NULLS, b"\x80" * 12), "ten bytes"),
        (with_schema(NODE, b"\x02" * 8_000 + b"\0"), "200 deep"),
        (with_schema(NODE, b"\x02" * 60_000), "200 deep"),
        (with_schema(NODE, b"\x7e"), "union of 2 types"),
        (with_schema(NODE, b""), "too early"),
        (with_schema(TIMES, bytes.fromhex("feffffff0f") + b"\0\x02a"), "2147483647"),
        (with_schema(TIMES, b"\0\0\x02\xff"), "base64"),
        (with_schema(TIMES, b"\0\0\xfe\xff\xff\xff\x0f"), "too early"),
        (with_schema(TIMES, b"\0\0\x02ab"), "left over"),
        (with_schema(FORBIDDEN, b"a"), "HTTP 403"),
        (with_schema(BROKEN, b"a"), "HTTP 500"),
        (with_schema(UNKNOWN, b"\xff"), "0x00"),
        (with_schema(PROTO, _proto_nested(150)), "more deeply"),
        (with_schema(PROTO, b"\0" + b"\x32\0" * 30_000), "orders"),
        (with_schema(PROTO, b"\0\x32\xff"), "do not fit"),
        (with_schema(PROTO, b"\xc8\x01" + b"\0" * 100), "message type"),
        (with_schema(PROTO, b"\x02\x7e"), "message type"),
        (with_schema(PROTO, b"\xff" * 8), "five bytes"),
        (with_schema(PROTO, b"\0\x1a\x0a\x08" + b"\x80" * 8 + b"\x10"), "seconds"),
        (with_schema(JSON_SCHEMA, b"[" * 50_000), "200 deep"),
        (with_schema(JSON_SCHEMA, b'{"a": NaN}'), "NaN"),
        (with_schema(JSON_SCHEMA, b"\xff\xfe"), "do not fit"),
        (b"[" * 60_000, "200 deep"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "200 deep"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "9999"),
        (b'{"a": 1e400, "a": 2}', "1e400"),
        (b'{"a": Infinity}', "Infinity"),
        (b'{"\\ud800": "\\udfff"}', "ud800"),
        (b'"' + b"\\" * 1_000, "\\"),
        (b"\xff" * 60_000, "0xff"),
        (b"\xed\xa0\x80", "0xeda080"),
        (b"\x1b[2J\x1b]0;evil\x07", "x1b"),
        ("\u202eevil\u2066".encode(), "u202e"),
        (("a" + "\u0301" * 5_000).encode(), "a\u0301"),
        (b"\r\nevil\r\n", "evil"),
        (b"\0" * 5, "x00"),
        (b"", ""),
        (None, "null"),
        (b"x" * (1 << 20), "1.0 MiB"),
        (b"{" + b'"a":{},' * 100_000 + b'"b":1}', "KiB"),
        (b"0x00", '"0x00"'),
        (b"null", '"null"'),
    ]
    found += [(bytes([number]) * BOMB_BYTES, "12.0 MiB") for number in (0, 32, 91, 123, 128, 255)]
    return found


def write_hostile(bootstrap: str, name: str) -> None:
    """Makes the topic, and writes them by all codecs."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(name, 1, 1, config={"max.message.bytes": str(BOMB_BYTES * 2)})
    admin.create_topics([new])[name].result(WAIT_S)
    values = [value for value, _ in hostile()]
    by_codec = {"none": values[:-6], "gzip": values[-6:-4], "snappy": values[-4:-3]}
    by_codec |= {"lz4": values[-3:-2], "zstd": values[-2:]}
    for codec, some in by_codec.items():
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "message.max.bytes": BOMB_BYTES * 2,
            }
        )
        for value in some:
            producer.produce(name, value, partition=0)
        assert producer.flush(WAIT_S) == 0
