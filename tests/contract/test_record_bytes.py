"""The route behind "show all" and "download": one record's key, value or header as it is."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from fastapi import FastAPI, Response

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from dashboard.server import record_bytes
from tests.contract.operations_rig import unique
from tests.support.patience import WAIT_S
from tests.unit.dashboard.page_context import context_on

LARGE = b"x" * (3 << 20) + "é".encode()
BINARY = b"\x00\xff" * 10


class Route:
    """Asks the route for records of one topic."""

    def __init__(self, bootstrap: str, folder: Path, topic: str) -> None:
        server = FastAPI()
        record_bytes.register(server, context_on(folder, bootstrap=bootstrap))
        self._route: Any = server.routes[-1]
        self._topic = topic

    async def get(self, offset: int, partition: int = 0, **query: str) -> Response:
        answer = await self._route.endpoint(self._topic, partition, offset, **query)
        assert isinstance(answer, Response)
        return answer


@pytest.fixture
async def topic(bootstrap: str, admin: KafkaAdmin) -> str:
    name = unique("whole")
    configs = {"max.message.bytes": str(8 << 20)}
    wanted = NewTopic(name=name, partitions=1, replication_factor=1, configs=configs)
    await admin.create_topic(wanted)
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 8 << 20})
    headers: list[tuple[str, str | bytes | None]] = [("a", b"first"), ("a", BINARY), ("b", None)]
    producer.produce(name, b"small", key=b"before")
    producer.produce(name, LARGE, key=BINARY, headers=headers)
    producer.produce(name, None, key=b"<script>alert(1)</script>")
    assert producer.flush(WAIT_S) == 0
    return name


async def test_a_record_is_given_whole_and_as_it_is(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    route = Route(bootstrap, tmp_path, topic)
    shown = await route.get(1)
    assert (shown.status_code, shown.body) == (200, LARGE)
    assert shown.headers["content-type"] == "text/plain; charset=utf-8"
    assert "content-disposition" not in shown.headers
    for part, content in (("value", LARGE), ("key", BINARY), ("header:1", BINARY)):
        kept = await route.get(1, part=part, keep="yes")
        assert (kept.status_code, kept.body) == (200, content)
        assert kept.headers["content-type"] == "application/octet-stream"
        name = f"{topic}-0-1.{part.replace(':', '-')}"
        assert kept.headers["content-disposition"] == f'attachment; filename="{name}"'
    bytes_shown = await route.get(1, part="key")
    assert bytes_shown.headers["content-type"] == "application/octet-stream"
    markup = await route.get(2, part="key")
    assert markup.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_copy_is_the_text_and_what_is_read_is_its_display(
    bootstrap: str, admin: KafkaAdmin, tmp_path: Path
) -> None:
    name = unique("copied")
    await admin.create_topic(NewTopic(name=name, partitions=1, replication_factor=1))
    producer = Producer({"bootstrap.servers": bootstrap})
    odd = "\ufeff\U0001f468\u200d\U0001f469\x1b[2J\r\n"
    large = '{"text": "' + "x" * 158_000 + '", "price": 1.10}'
    for value in (odd, large, b"\xff\0"):
        producer.produce(name, value, key="k")
    assert producer.flush(WAIT_S) == 0
    route = Route(bootstrap, tmp_path, name)
    copied = [bytes((await route.get(offset, text="copied")).body) for offset in range(3)]
    assert copied == [odd.encode(), large.encode(), b"0xff00"]
    laid_out = bytes((await route.get(1, text="laid-out")).body).decode()
    assert laid_out.startswith('{\n  "text": "xxx')
    assert laid_out.endswith('",\n  "price": 1.10\n}')
    assert b"\x1b" not in bytes((await route.get(0, text="laid-out")).body)
    assert bytes((await route.get(0, part="key", text="copied")).body) == b"k"
    hexed = await route.get(1, text="copied", vf="hex")
    assert bytes(hexed.body) == b"0x" + large.encode().hex().encode()


async def test_what_is_not_there_is_named(bootstrap: str, topic: str, tmp_path: Path) -> None:
    route = Route(bootstrap, tmp_path, topic)
    for offset, part, words in (
        (2, "value", "no 'value'"),
        (1, "header:2", "no 'header:2'"),
        (1, "header:3", "no 'header:3'"),
        (1, "header:x", "no 'header:x'"),
        (1, "lid", "no 'lid'"),
        (3, "value", "at offset 3"),
        (-1, "value", "at offset -1"),
    ):
        answer = await route.get(offset, part=part)
        assert (answer.status_code, words in bytes(answer.body).decode()) == (404, True)
    nowhere = await route.get(1, partition=9)
    assert (nowhere.status_code, b"9" in bytes(nowhere.body)) == (502, True)


async def test_a_record_that_was_deleted_is_not_another_one(
    bootstrap: str, topic: str, tmp_path: Path, admin: KafkaAdmin
) -> None:
    (key,) = (each.key for each in (await admin.topics([topic]))[0].partitions)
    await admin.offsets.delete_records({key: 1})
    route = Route(bootstrap, tmp_path, topic)
    assert (await route.get(0)).status_code == 404
    assert (await route.get(1)).body == LARGE
