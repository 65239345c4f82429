"""What comes in from outside for minutes: nonsense on the bus, to the page and from a registry.

Nothing ends, nothing hangs, memory stays bounded. `tests.support.fuzzing` says for how long, and
with which dice.
"""

import json
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from control.kafka.records.schema_registry import (
    RegistryError,
    Schema,
    SchemaKind,
    SchemaRegistry,
)
from control.messages.decoding.formats import BoundError
from control.messages.decoding.schemas import SchemaError, decode_with
from control.move.commands import OPERATIONS_TOPIC
from control.move.events import EVENTS_TOPIC, EventKind
from tests.contract.operations_rig import ExecutorProcess
from tests.property.test_fuzz_bus import valid
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.command_line import CommandLine
from tests.support.fuzzing import FAULTS, FUZZ_S, FUZZ_SEED
from tests.support.mutations import mutated
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S, patience_s
from tests.support.raw_registry import RawRegistry

pytestmark = [pytest.mark.soak, pytest.mark.timeout(FUZZ_S + patience_s(300.0))]

HANGS_S: Final = patience_s(2.0)
GROWTH_KIB_MAX: Final = 300 * 1024
"""What page and executor may take more than after their start."""
RECORDS_PER_S: Final = 20
ADDRESSES: Final = (
    "/", "/topics", "/topics/a%2Fb", "/groups/%FF", "/brokers/101?at=now", "/health",
    "/rows/partitions?from=0&to=100&q=lag>0&sort=-lag", "/rows/topics?q=broker:101%20name:x",
    "/export/topics.csv?cols=name", "/messages/t.jsonl?cel=value.a>1&limit=5",
    "/messages/t.jsonl?regex=(a+)+$&json=$.a[?@.b>1]", "/record/t/0/0", "/report/mv-1.html",
    "/assets/x.css", "/_dash-layout", "/_dash-dependencies", "/@nothing/topics",
)  # fmt: skip
SCHEMAS: Final = (
    (SchemaKind.AVRO, b'{"type":"record","name":"N","fields":[{"name":"n","type":["null","N"]}]}'),
    (SchemaKind.AVRO, b'{"type":"array","items":{"type":"map","values":["long","string"]}}'),
    (SchemaKind.PROTOBUF, b'syntax = "proto3"; message M { M m = 1; repeated string s = 2; }'),
    (SchemaKind.JSON, b'{"type":"object","properties":{"a":{"$ref":"#"}}}'),
)
CONTENTS: Final = (
    b"\x02" * 40,
    b"\x08" + b"\x02a\x00" * 4 + b"\0",
    b"\0\x0a\x02\x0a\0",
    b'{"a":[{}]}',
)
ODD: Final[tuple[Any, ...]] = (None, 5, -1.5, [], {}, [[]], {"a": []}, "", "x" * 5_000, True)


@dataclass
class Outside:
    """A cluster with executor and page, and what is tried on them."""

    bootstrap: str
    page: PageServer
    executor: ExecutorProcess
    until_s: float = field(default_factory=lambda: time.monotonic() + FUZZ_S)
    tried: Counter[str] = field(default_factory=Counter)
    slowest_s: dict[str, float] = field(default_factory=dict)

    def repeat(self, name: str, attempt: Callable[[random.Random], None]) -> None:
        """Attempts until the time is over."""
        dice = random.Random(f"{FUZZ_SEED} {name}")
        while time.monotonic() < self.until_s:
            began_s = time.monotonic()
            attempt(dice)
            took_s = time.monotonic() - began_s
            self.tried[name] += 1
            self.slowest_s[name] = max(took_s, self.slowest_s.get(name, 0.0))

    def resident_kib(self) -> dict[str, int]:
        """Memory of page and executor."""
        assert self.executor.process is not None
        pids = {"page": self.page.pid, "executor": self.executor.process.pid}
        return {name: _resident_kib(pid) for name, pid in pids.items()}


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    with ExitStack() as stack:
        cluster = stack.enter_context(
            LocalCluster(tmp_path / "cluster", brokers=1, overrides=NOBODY_DIES)
        )
        executor = stack.enter_context(ExecutorProcess(cluster.bootstrap, tmp_path / "executor"))
        executor.wait_until_said("ready")
        flags = ("--bootstrap", cluster.bootstrap, "--bus", cluster.bootstrap)
        page = stack.enter_context(PageServer(tmp_path / "store", *flags))
        yield Outside(cluster.bootstrap, page, executor)


def test_nothing_from_outside_ends_or_holds_what_is_ours(outside: Outside, tmp_path: Path) -> None:
    before = outside.resident_kib()
    producer = Producer({"bootstrap.servers": outside.bootstrap})
    with ThreadPoolExecutor() as doors, RawRegistry(b"") as registry:
        running = [
            doors.submit(outside.repeat, name, attempt)
            for name, attempt in {
                "bus": lambda dice: _write_nonsense(dice, producer),
                "page": lambda dice: _ask_nonsense(dice, outside.page.port),
                "socket": lambda dice: _send_nonsense(dice, outside.page),
                "health": lambda _: _ask_health(outside.page),
                "registry": lambda dice: _answer_nonsense(dice, registry),
                "decoder": _decode_nonsense,
            }.items()
        ]
        for door in running:
            door.result()
    assert producer.flush(WAIT_S) == 0
    print(dict(outside.tried), outside.slowest_s, before, outside.resident_kib())
    assert {it: s for it, s in outside.slowest_s.items() if s > HANGS_S} == {}
    grown = {it: kib - before[it] for it, kib in outside.resident_kib().items()}
    assert {it: kib for it, kib in grown.items() if kib > GROWTH_KIB_MAX} == {}
    for log in outside.page.log.read_text(), outside.executor.said():
        assert FAULTS.findall(log) == []
    line = CommandLine(bootstrap=outside.bootstrap, bus=outside.bootstrap, folder=tmp_path)
    for command in "moves", "journal":
        assert "left out" in line.run(command)


def _write_nonsense(dice: random.Random, producer: Producer) -> None:
    kind = dice.choice(list(EventKind))
    document = {
        "operation_id": f"mv-{dice.randrange(50)}",
        "kind": dice.choice([kind.value, "reassign", "control"]),
        "at_ms": 1,
        "action": "pause",
        "data": valid(kind),
        **valid(kind),
    }
    value = json.dumps(document).encode()
    if dice.random() < 0.7:
        value = mutated(dice, value)
    if dice.random() < 0.05:
        value = dice.choice((b"[", b'{"a":')) * dice.randrange(100_000)
    topic = dice.choice((EVENTS_TOPIC, OPERATIONS_TOPIC))
    producer.produce(topic, value, key=dice.choice((b"mv-1", b"mv-2/progress", b"\xff", b"")))
    producer.poll(1 / RECORDS_PER_S)


def _ask_nonsense(dice: random.Random, port: int) -> None:
    """A request whole, damaged or broken off; whatever comes back, it comes or the end does."""
    address = dice.choice(ADDRESSES).replace(">", dice.choice((">", "%3E", ":", "<" * 500)))
    length = dice.choice(("", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"))
    body = dice.choice((b"", b"", b'{"output":"x"}', b"5\r\nabcde\r\n", b"[" * 20_000))
    method = dice.choice(("GET", "GET", "GET", "POST", "HEAD", "PUT", "X"))
    head = f"{method} {address} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{length}"
    request = head.encode() + b"\r\n" + body
    if dice.random() < 0.5:
        request = mutated(dice, request)
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as stranger, suppress(OSError):
        stranger.settimeout(1.0)
        stranger.sendall(request)
        if dice.random() < 0.9:
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(WAIT_S)
            stranger.recv(1 << 16)


def _send_nonsense(dice: random.Random, page: PageServer) -> None:
    """A few messages to the page's WebSocket, of its origin or of another."""
    origin = dice.choice((page.url, page.url, page.url, "https://evil.example", ""))
    url = f"ws{page.url.removeprefix('http')}/_dash-ws-callback"
    suppressed = suppress(WebSocketException, OSError, EOFError, TimeoutError)
    with suppressed, connect(url, additional_headers={"Origin": origin}) as stranger:
        for _ in range(dice.randrange(20)):
            message: dict[str, Any] = {
                "type": "callback_request",
                "requestId": "1",
                "rendererId": "r",
                "payload": {"output": "page.children", "inputs": [], "changedPropIds": ["a.b"]},
            }
            if dice.random() < 0.5:
                message[dice.choice(list(message))] = dice.choice(ODD)
            sent = json.dumps(message).encode()
            sent = mutated(dice, sent) if dice.random() < 0.5 else sent
            if dice.random() < 0.02:
                sent = b"[" * 1_000_000
            stranger.send(sent if dice.random() < 0.2 else sent.decode(errors="replace"))
        with suppress(TimeoutError):
            stranger.recv(0.05)


def _ask_health(page: PageServer) -> None:
    """As its supervisor does: the page answers, whatever else is asked of it."""
    with urlopen(f"{page.url}/health", timeout=WAIT_S) as answer:
        assert answer.status == 200
    time.sleep(0.2)


def _answer_nonsense(dice: random.Random, registry: RawRegistry) -> None:
    """A registry of which each answer is another one, mostly one that it may not give."""
    kind, text = dice.choice(SCHEMAS)
    document: dict[str, Any] = {
        "schemaType": kind.value,
        "schema": mutated(dice, text).decode("latin-1"),
    }
    document |= {"references": dice.choice(([], [{"name": "", "subject": "s", "version": 1}], 5))}
    body = json.dumps(document).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    registry.answer = mutated(dice, head + body) if dice.random() < 0.7 else head + body
    client = SchemaRegistry(replace(registry.settings, timeout_s=0.5))
    with suppress(RegistryError, SchemaError, BoundError):
        decode_with(client.schema(7), b"\0\0\0\0\7" + dice.choice(CONTENTS))


def _decode_nonsense(dice: random.Random) -> None:
    (kind, text), content = dice.choice(SCHEMAS), dice.choice(CONTENTS)
    if dice.random() < 0.4:
        text = mutated(dice, text)
    schema = Schema(schema_id=7, kind=kind, text=text.decode("latin-1"), references=())
    with suppress(SchemaError, BoundError):
        decode_with(schema, b"\0\0\0\0\7" + mutated(dice, content))


def _resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])
