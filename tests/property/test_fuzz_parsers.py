"""Parsers of bytes from the network and the disk, given valid bytes that were changed at random.

Each answers with a value or with the error that it promises, and takes memory in proportion to
what it was given. `make soak` takes more seeds.
"""

import random
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

import pytest
from kio.schema.index import api_key_map, schema_name_map

from broker.coordinator.errors import RecordFormatError
from broker.coordinator.groups.consumer_protocol import assigned_partitions, subscribed_topics
from broker.coordinator.records import (
    OffsetKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_offset_key,
)
from broker.coordinator.wire import Writer
from broker.metadata.record_codec import decode_record, encode_record
from broker.metadata.records import RecordError
from broker.protocol import codec
from broker.protocol.errors import ProtocolError
from broker.protocol.hot.cursor import encode_uvarint
from broker.protocol.hot.fetch import decode_fetch
from broker.protocol.hot.produce import decode_produce
from broker.protocol.hot.replica_fetch import decode_replica_fetch
from broker.protocol.message_formats import crc_is_valid, iter_batches, open_batch
from broker.protocol.records import NewRecord, build_batch, iter_batch_headers, iter_records
from broker.protocol.rewrite import plain_records, scan_records
from tests.support.mutations import mutated
from tests.unit.broker.metadata.test_record_codec import EXAMPLES
from tests.unit.broker.protocol.messages import sample

SEEDS: Final = [
    range(1, 2),
    *(pytest.param(range(n, n + 10), marks=pytest.mark.soak) for n in range(2, 62, 10)),
]
REQUEST_CHANGES: Final = 5
CHANGES: Final = 600
MEMORY_FACTOR: Final = 300
"""Bytes of objects that one byte of input may become: lists of small entities are the worst."""
MEMORY_MIN: Final = 1 << 20

VERSIONS: Final = [
    (key, version) for key, name in api_key_map.items() for version in schema_name_map[name]
]
HOT: Final[dict[int, Any]] = {0: decode_produce, 1: decode_fetch}
HOT_SINCE: Final = {0: 3, 1: 4}
RECORDS: Final = [
    NewRecord(key=b"key%d" % n, value=b"value" * 9, timestamp=n, headers=(("h", b"1"),))
    for n in range(5)
]
BATCHES: Final = [build_batch(RECORDS, codec=compression) for compression in range(5)]


class Parser(NamedTuple):
    """What takes bytes, what it may raise, and valid bytes for it."""

    parse: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    inputs: Sequence[bytes]
    memory_min: int = MEMORY_MIN


def _read_batches(data: bytes) -> None:
    for header, position in iter_batch_headers(data):
        batch = memoryview(data)[position : position + header.size_bytes]
        for _ in iter_records(batch):
            pass


def _scan_batches(data: bytes) -> None:
    for header, position in iter_batch_headers(data):
        batch = data[position : position + header.size_bytes]
        for _ in scan_records(plain_records(batch, header), header.records_count):
            pass


def _read_old_batches(data: bytes) -> None:
    for header, position in iter_batches(data):
        batch = data[position : position + header.size_bytes]
        crc_is_valid(batch, header)
        for _ in open_batch(batch, header)[1]:
            pass


def _group_value() -> bytes:
    member = Writer().string("m").string(None).string("c").string("h").int32(1).int32(2)
    head = Writer().int16(3).string("consumer").int32(4).string("range").string("m").int64(5)
    body = member.blob(b"subscription").blob(b"assignment").to_bytes()
    return head.int32(1).to_bytes() + body


def _replica_answer() -> bytes:
    partition = struct.pack(">ihqqq", 0, 0, 5, 5, 0) + b"\x01" + struct.pack(">i", -1)
    rest = encode_uvarint(len(BATCHES[0]) + 1) + BATCHES[0] + b"\x00"
    topic = bytes(16) + b"\x02" + partition + rest + b"\x00"
    return struct.pack(">ibihi", 1, 0, 0, 0, 7) + b"\x02" + topic + b"\x00"


SUBSCRIPTION: Final = Writer().int16(1).int32(2).string("a").string("b").blob(b"x").to_bytes()
ASSIGNMENT: Final = Writer().int16(1).int32(1).string("a").int32(2).int32(0).int32(1).to_bytes()
GROUP: Final = (RecordFormatError,)
PROTOCOL: Final = (ProtocolError,)
OPENED: Final = 140 << 20
"""Compressed records may be that much larger: compression.PLAIN_BYTES_MAX."""

PARSERS: Final = {
    "records": Parser(_read_batches, PROTOCOL, BATCHES, OPENED),
    "spans": Parser(_scan_batches, PROTOCOL, BATCHES, OPENED),
    "records of every format": Parser(_read_old_batches, PROTOCOL, BATCHES, OPENED),
    "metadata records": Parser(decode_record, (RecordError,), [encode_record(r) for r in EXAMPLES]),
    "replica fetch": Parser(
        lambda data: decode_replica_fetch(memoryview(data)), PROTOCOL, [_replica_answer()]
    ),
    "offset key": Parser(
        decode_key, GROUP, [encode_offset_key(OffsetKey(group_id="g", topic="t", partition=1))]
    ),
    "offset value": Parser(
        decode_offset_value,
        GROUP,
        [Writer().int16(3).int64(1).int32(2).string("m").int64(3).to_bytes()],
    ),
    "group value": Parser(lambda data: decode_group_value("g", data), GROUP, [_group_value()]),
    "subscription": Parser(subscribed_topics, (), [SUBSCRIPTION]),
    "assignment": Parser(assigned_partitions, (), [ASSIGNMENT]),
}


def check(parser: Parser, data: bytes) -> None:
    """Parse, and bound the memory it took.

    :raises AssertionError: another error than one promised, or too much memory.
    """
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        parser.parse(data)
    except parser.errors:
        pass
    except Exception as error:
        raise AssertionError(f"{data.hex()}: {error!r}") from error
    taken = tracemalloc.get_traced_memory()[1] - before
    assert taken <= parser.memory_min + MEMORY_FACTOR * len(data), f"{taken} for {data.hex()}"


@pytest.fixture(scope="module")
def frames() -> list[tuple[int, int, bytes]]:
    """Each API and version with a sound request, whose classes and readers are made by now."""
    made = []
    for key, version in VERSIONS:
        message = sample(codec.request_type(key, version))
        frame = bytes(codec.encode_request(message, correlation_id=7, client_id="c")[4:])
        codec.decode_request(frame)
        made.append((key, version, frame))
    return made


@pytest.fixture(autouse=True)
def _traced(frames: object) -> Any:
    tracemalloc.start(1)
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("name", PARSERS)
def test_changed_bytes_are_parsed_or_refused(name: str, seeds: range) -> None:
    parser = PARSERS[name]
    for data in parser.inputs:
        parser.parse(data)
    for seed in seeds:
        dice = random.Random(f"{name} {seed}")
        for _ in range(CHANGES):
            check(parser, mutated(dice, dice.choice(parser.inputs)))


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_changed_requests_of_every_version_are_decoded_or_malformed(
    frames: list[tuple[int, int, bytes]], seeds: range
) -> None:
    for seed, (key, version, frame) in product(seeds, frames):
        dice = random.Random(f"{seed} {key} {version}")
        for _ in range(REQUEST_CHANGES):
            data = mutated(dice, frame)
            check(Parser(codec.decode_request, PROTOCOL, []), data)
            if version >= HOT_SINCE.get(key, 99):
                _check_hot(key, data)


@pytest.mark.parametrize("api", [(14, 5), (14, 3), (56, 3), (46, 0)])
def test_an_announced_length_reserves_no_memory(api: tuple[int, int]) -> None:
    """In a process of its own: the one that believes it is aborted."""
    program = (
        "import random, sys\n"
        "from broker.protocol import codec\n"
        "from tests.unit.broker.protocol.messages import sample\n"
        f"message = sample(codec.request_type{api})\n"
        "frame = codec.encode_request(message, correlation_id=7, client_id='c')[4:]\n"
        "for at in range(12, len(frame)):\n"
        "    for length in (b'\\x7f\\xff\\xff\\xf0', b'\\xff\\xff\\xff\\xff\\x07'):\n"
        "        data = frame[:at] + length + frame[at + len(length):]\n"
        "        try:\n"
        "            codec.decode_request(data)\n"
        "        except codec.MalformedRequestError:\n"
        "            pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]


def _check_hot(key: int, data: bytes) -> None:
    def parse(frame: bytes) -> object:
        header = codec.decode_header(frame)
        is_hot = header.api_key == key and header.api_version >= HOT_SINCE[key]
        return HOT[header.api_key](header, memoryview(frame)) if is_hot else None

    check(Parser(parse, PROTOCOL, []), data)
