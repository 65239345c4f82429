"""Quotas that throttle: a client that uses more than it may hears how long it is not heard, and is
not heard for so long; on brokers of ours and on Kafka."""

import itertools
import select
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from tests.contract.test_client_quotas import alter, describe, exactly, quotas
from tests.support import wire
from tests.support.cases import case
from tests.support.patience import patience_s
from tests.support.quota_cases import Entity
from tests.support.settle import wait_until

NAMES: Final = itertools.count()
ANONYMOUS: Final = "ANONYMOUS"
PRODUCE, FETCH, METADATA, CREATE, DELETE, PARTITIONS = (0, 9), (1, 11), (3, 12), 19, 20, 37
KIB: Final = 1_024


class Client:
    """A connection of a client with a name of its own."""

    def __init__(self, address: str, name: str) -> None:
        host, _, port = address.rpartition(":")
        self.name = name
        self._sock = socket.create_connection((host, int(port)), timeout=patience_s(30))

    def close(self) -> None:
        self._sock.close()

    def send(self, api: tuple[int, int], **fields: Any) -> None:
        message = codec.build_request(*api, **fields)
        self._sock.sendall(codec.encode_request(message, correlation_id=1, client_id=self.name))

    def receive(self, api: tuple[int, int]) -> Any:
        size = int.from_bytes(self._read(4), "big")
        return codec.decode_response(*api, self._read(size))[1]

    def ask(self, api: tuple[int, int], **fields: Any) -> Any:
        self.send(api, **fields)
        return self.receive(api)

    def has_answer(self) -> bool:
        """Whether something has come by now."""
        return bool(select.select([self._sock], [], [], 0)[0])

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._sock.recv(count - len(data))
            assert piece, "the broker closed the connection"
            data += piece
        return data


def throttle_s(answer: Any) -> float:
    return float(answer.throttle_time / timedelta(seconds=1))


@pytest.fixture(scope="module")
def leaders() -> dict[str, tuple[str, str]]:
    return {}


@pytest.fixture
def topic(bootstrap: str, leaders: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """A topic with one partition, and its leader's address."""
    if bootstrap not in leaders:
        name, first = f"throttled-{next(NAMES)}", bootstrap.split(",")[0]
        new = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
        told = wire.ask(
            *(first, CREATE, 5),
            codec.build_request(CREATE, 5, topics=new, timeout=30_000),
        )
        assert told.topics[0].error_code in (ErrorCode.none, ErrorCode.topic_already_exists)
        wire.wait_for_topic(bootstrap, name, 1)
        seen = wire.topic_at(first, name)
        (node,) = {int(it.leader_id) for it in seen.partitions}
        ports = {int(it.node_id): int(it.port) for it in wire.metadata(first).brokers}
        leaders[bootstrap] = name, f"127.0.0.1:{ports[node]}"
    return leaders[bootstrap]


@contextmanager
def quota(bootstrap: str, entity: Entity, **limits: float) -> Iterator[None]:
    """While the brokers know of it."""
    address, *_ = addresses = bootstrap.split(",")
    assert alter(address, (entity, tuple(limits.items()))) == [(dict(entity), ErrorCode.none)]
    try:
        expected = [(dict(entity), limits)]
        wait_until(
            lambda: all(
                quotas(describe(it, *exactly(entity), strict=True)) == expected for it in addresses
            ),
            f"{entity} has {limits}",
        )
        yield
    finally:
        alter(address, (entity, tuple((key, None) for key in limits)))


def produce(topic: str, size_bytes: int, acks: int = 1) -> dict[str, Any]:
    batch = build_batch([NewRecord(value=b"v" * size_bytes, timestamp=1)])
    partitions = [{"index": 0, "records": batch}]
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": 10_000,
        "topic_data": [{"name": topic, "partition_data": partitions}],
    }


def fetch(topic: str, offset: int, bytes_max: int) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": bytes_max}
    return {
        "max_wait": 100,
        "min_bytes": 1,
        "max_bytes": bytes_max,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }


def records_bytes(answer: Any) -> int:
    return sum(len(p.records or b"") for t in answer.responses for p in t.partitions)


ENTITIES: Final[list[tuple[str, Entity, bool]]] = [
    ("client-id", (("client-id", "NAME"),), True),
    ("both", (("user", ANONYMOUS), ("client-id", "NAME")), True),
    ("any user's client", (("user", None), ("client-id", "NAME")), True),
    ("another client", (("client-id", "another"),), False),
    ("another user", (("user", "another"), ("client-id", "NAME")), False),
]


@pytest.mark.parametrize(("of", "entity", "is_bound"), ENTITIES, ids=[it[0] for it in ENTITIES])
def test_a_burst_of_produce_is_throttled(
    topic: tuple[str, str], of: str, entity: Entity, *, is_bound: bool
) -> None:
    name, address = topic
    client_id = f"throttled-{next(NAMES)}"
    named = tuple((kind, client_id if it == "NAME" else it) for kind, it in entity)
    with (
        quota(address, named, producer_byte_rate=4 * KIB),
        closing(Client(address, client_id)) as client,
    ):
        first = client.ask(PRODUCE, **produce(name, 30 * KIB))
        assert throttle_s(first) == 0, of
        second = client.ask(PRODUCE, **produce(name, 30 * KIB))
        error = [p.error_code for t in second.responses for p in t.partition_responses]
        assert error == [ErrorCode.none]
        if is_bound:  # 60 KiB in 10 s, where 40 KiB may be: 5 s
            assert 3 < throttle_s(second) < 7
        else:
            assert throttle_s(second) == 0


def test_a_throttled_connection_is_not_heard_and_others_are(topic: tuple[str, str]) -> None:
    name, address = topic
    client_id = f"throttled-{next(NAMES)}"
    entity: Entity = (("client-id", client_id),)
    with (
        quota(address, entity, producer_byte_rate=8 * KIB),
        closing(Client(address, client_id)) as client,
        closing(Client(address, "nobody")) as other,
    ):
        begun = time.monotonic()
        told = client.ask(PRODUCE, **produce(name, 96 * KIB))
        assert 1 < throttle_s(told) < 3  # 96 KiB, where 80 may be
        client.send(METADATA, topics=())
        other.ask(METADATA, topics=())
        assert not client.has_answer() or time.monotonic() - begun > throttle_s(told)
        client.receive(METADATA)
        assert time.monotonic() - begun >= throttle_s(told)


def test_produce_without_an_answer_is_throttled(topic: tuple[str, str]) -> None:
    name, address = topic
    client_id = f"throttled-{next(NAMES)}"
    with (
        quota(address, (("client-id", client_id),), producer_byte_rate=8 * KIB),
        closing(Client(address, client_id)) as client,
    ):
        begun = time.monotonic()
        client.send(PRODUCE, **produce(name, 96 * KIB, acks=0))
        client.ask(METADATA, topics=())
        assert time.monotonic() - begun > 0.8


def test_a_fetch_beyond_the_quota_brings_nothing_but_the_throttle(topic: tuple[str, str]) -> None:
    name, address = topic
    client_id = f"throttled-{next(NAMES)}"
    with closing(Client(address, "nobody")) as other:
        told = [other.ask(PRODUCE, **produce(name, 30 * KIB)) for _ in range(3)]
        offset = int(told[0].responses[0].partition_responses[0].base_offset)
    with (
        quota(address, (("client-id", client_id),), consumer_byte_rate=4 * KIB),
        closing(Client(address, client_id)) as client,
    ):
        first = client.ask(FETCH, **fetch(name, offset, 31 * KIB))
        assert (throttle_s(first), records_bytes(first) > 30 * KIB) == (0, True)
        second = client.ask(FETCH, **fetch(name, offset, 31 * KIB))
        assert throttle_s(second) > 0
        assert records_bytes(second) == 0
        assert not second.responses


def test_time_is_throttled(topic: tuple[str, str]) -> None:
    _, address = topic
    client_id = f"throttled-{next(NAMES)}"
    with (
        quota(address, (("client-id", client_id),), request_percentage=0.001),
        closing(Client(address, client_id)) as client,
    ):
        told = [throttle_s(client.ask(METADATA, topics=())) for _ in range(3)]
    assert max(told) == 1.0  # never longer than a window


def created(name: str, partitions: int) -> dict[str, Any]:
    topics = [{"name": name, "num_partitions": partitions, "replication_factor": 1}]
    return {"topics": topics, "timeout": 30_000}


def test_mutations_beyond_the_quota_are_refused_or_throttled(bootstrap: str) -> None:
    address, client_id = bootstrap.split(",")[0], f"throttled-{next(NAMES)}"
    exceeded = ErrorCode.throttling_quota_exceeded
    with quota(bootstrap, (("client-id", client_id),), controller_mutation_rate=0.05):
        client = Client(address, client_id)
        told = client.ask((CREATE, 6), **created(f"{client_id}-a", 8))
        assert (told.topics[0].error_code, throttle_s(told)) == (ErrorCode.none, 0)
        told = client.ask((CREATE, 6), **created(f"{client_id}-b", 1))
        assert told.topics[0].error_code is exceeded
        assert 60 < throttle_s(told) < 160  # 8 were taken of 0.55
        client.close()
        steps: list[tuple[tuple[int, int], dict[str, Any], str, ErrorCode]] = [
            ((PARTITIONS, 3), {"topics": [{"name": f"{client_id}-a", "count": 9,
                "assignments": None}], "timeout": 30_000}, "results", exceeded),
            ((DELETE, 5), {"topic_names": (f"{client_id}-a",), "timeout": 30_000},
             "responses", exceeded),
            ((CREATE, 5), created(f"{client_id}-c", 1), "topics", ErrorCode.none),
        ]  # fmt: skip
        for api, fields, rows, error in steps:
            with case(api, fields), closing(Client(address, client_id)) as client:
                told = client.ask(api, **fields)
                assert [it.error_code for it in getattr(told, rows)] == [error]
                assert throttle_s(told) > 0


def is_served(address: str, source: str) -> bool:
    """Whether a connection from a source's address is answered."""
    host, _, port = address.rpartition(":")
    frame = codec.encode_request(
        codec.build_request(18, 0), correlation_id=1, client_id="throttled"
    )
    try:
        with socket.create_connection(
            (host, int(port)), timeout=patience_s(30), source_address=(source, 0)
        ) as sock:
            sock.sendall(frame)
            return bool(sock.recv(4))
    except ConnectionError:
        return False


def test_an_address_that_connects_too_often_is_refused_and_others_are_not(bootstrap: str) -> None:
    address, source = bootstrap.split(",")[0], "127.0.0.77"
    with quota(bootstrap, (("ip", source),), connection_creation_rate=1.0):
        tries = iter(range(200))
        first_refused = next(it for it in tries if not is_served(address, source))
        assert first_refused >= 8  # ten windows of one each
        assert all(is_served(address, "127.0.0.78") for _ in range(12))
    wait_until(lambda: is_served(address, source), "the quota is gone")
