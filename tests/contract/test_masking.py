"""Attacks on masked fields: by every way that records go out of a page and a command line."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.contract.operations_rig import unique
from tests.support.attacker import Attacker, bearer, page_with_users
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.patience import WAIT_S

pytestmark = pytest.mark.thorough

PAN: Final = "4111222233334444"
TOKEN: Final = "bearer-9f1c"
HOLDER: Final = "holder-77"
LOST: Final = "lost-55"
SECRETS: Final = (PAN, TOKEN, HOLDER, LOST)
PREFIX: Final = "mask-cards"
CONFIG: Final = f"""
[roles.auditor]
records = true
unmasked = true
topics = ["{PREFIX}*"]

[[masking]]
topics = ["{PREFIX}*"]
fields = ["value.card.number", "key", "headers.authorization"]
"""
OPEN: Final = "order-1"
ASKED: Final[tuple[dict[str, str], ...]] = (
    {}, {"q": PAN}, {"q": HOLDER}, {"q": TOKEN}, {"regex": "4[0-9]{15}"}, {"q": "41112"},
    {"key": HOLDER}, {"key": "holder*"}, {"header": f"authorization={TOKEN}"},
    {"path": f"$[?@.number == '{PAN}']"}, {"path": f"$.card[?match(@, '{PAN[:4]}.*')]"},
    {"cel": f"value.card.number == '{PAN}'"}, {"cel": f"key == '{HOLDER}'"},
    {"cel": f"headers.authorization == '{TOKEN}'"}, {"cel": "value.card.number.startsWith('4')"},
    {"cel": "int(value.card.number) > 0"}, {"vf": "string"}, {"vf": "hex"}, {"vf": "base64"},
    {"vf": "avro"}, {"vf": "msgpack"}, {"kf": "hex", "vf": "protobuf"}, {"q": PAN.encode().hex()},
)  # fmt: skip


def coded(text: str) -> tuple[str, ...]:
    """A text as a format might write it."""
    return text, text.encode().hex(), text[4:12]


def betrayed(told: str) -> list[str]:
    """Secrets that a text holds."""
    return [each for secret in SECRETS for each in coded(secret) if each in told]


@pytest.fixture(scope="module")
def topic(our_cluster: LocalCluster) -> str:
    name = unique(PREFIX)
    client = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    made = client.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    made[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": our_cluster.bootstrap})
    order = {"id": OPEN, "card": {"number": PAN, "brand": "visa"}, "price": "PRICE"}
    text = json.dumps(order).replace('"PRICE"', "1.10")
    producer.produce(name, text, key=HOLDER, headers=[("Authorization", TOKEN), ("trace", "9f")])
    producer.produce(name, f"no document {LOST}", key=HOLDER)
    producer.produce(name, f'{{"card": {{"number": "{PAN}"}}, "card": {{}}}}'.encode())
    producer.produce(name, None, key=HOLDER)
    producer.produce(name, b"\x00\x00\x00\x00\x07" + LOST.encode())
    producer.produce(name, f'{{"card": "{PAN}"}}')
    producer.produce(name, f'{{"broken": {{"card": "{LOST}"')
    assert producer.flush(WAIT_S) == 0
    return name


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("masked") / "partiscope.toml"
    path.write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARTISCOPE_CONFIG", str(path))
        yield path


@pytest.fixture(scope="module")
def page(our_cluster: LocalCluster, topic: str, config: Path) -> Iterator[Attacker]:
    at = our_cluster.bootstrap
    with page_with_users(config.parent, "--bootstrap", at, "--bus", at) as attacker:
        attacker.add("auditor", "auditor")
        yield attacker


@pytest.fixture(scope="module")
def admin(page: Attacker) -> str:
    return page.cookie_of("alice")


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_no_search_and_no_download_betrays_what_is_masked(
    page: Attacker, topic: str, admin: str, kind: str
) -> None:
    for asked in ASKED:
        with case(asked):
            query = urlencode({"since": "earliest", **asked})
            answer = page.ask(f"/messages/{topic}.{kind}?{query}", cookie=admin)
            assert answer.status in (200, 400), answer.text
            assert betrayed(answer.text + str(answer.headers)) == []
            if asked and not {"vf", "kf"} & set(asked):
                assert OPEN not in answer.text, "a filter saw what is masked"


def test_what_is_not_masked_is_seen_and_found(page: Attacker, topic: str, admin: str) -> None:
    for asked in ({"q": "visa"}, {"path": "$[?@.brand == 'visa']"}, {"header": "trace=9f"},
                  {"cel": "value.price > 1.0"}, {"cel": "value.card.number == '***'"}):  # fmt: skip
        with case(asked):
            query = urlencode({"since": "earliest", **asked})
            lines = page.ask(f"/messages/{topic}.jsonl?{query}", cookie=admin).text.splitlines()
            (found,) = [it for it in map(json.loads, lines) if it["offset"] == 0]
            assert found["decoded"]["value"]["document"] == {
                "id": OPEN, "card": {"number": "***", "brand": "visa"}, "price": 1.1,
            }  # fmt: skip
            assert '"price":1.10' in found["value"]
            assert (found["masked"], found["crc"], found["key"]) == (True, None, "***")
            assert found["headers"] == [["Authorization", "***"], ["trace", "9f"]]


def test_one_record_is_masked_in_every_part_and_format(
    page: Attacker, topic: str, admin: str
) -> None:
    for offset in range(7):
        for asked in (
            "part=value", "part=key", "part=json", "part=header:0", "part=value&keep=yes",
            "part=value&text=copied", "part=value&text=laid-out", "part=key&text=copied",
            *(f"part=value&text=laid-out&vf={it}" for it in ("hex", "base64", "avro", "string")),
            "part=json&vf=hex&kf=hex", "part=json&vf=avro",
        ):  # fmt: skip
            with case((offset, asked)):
                answer = page.ask(f"/record/{topic}/0/{offset}?{asked}", cookie=admin)
                assert betrayed(answer.text + str(answer.headers)) == []
    kept = page.ask(f"/record/{topic}/0/3?part=json", cookie=admin)
    assert json.loads(kept.text)["value"] is None  # a tombstone stays one


def _told(page: Attacker, topic: str, cookie: str, **asked: Any) -> str:
    """The first words over a WebSocket that end a reading."""
    with connect(
        f"ws://{page.host}/follow/{topic}", origin=Origin(page.origin),
        additional_headers={"Cookie": cookie},
    ) as socket_:  # fmt: skip
        socket_.send(json.dumps(asked))
        while True:
            told = str(socket_.recv(timeout=WAIT_S))
            if "is_running" not in told:
                return told


def test_a_tab_that_reads_is_told_nothing_of_it(page: Attacker, topic: str, admin: str) -> None:
    for asked in ASKED:
        with case(asked):
            told = _told(page, topic, admin, do="read", query={"since": "earliest", **asked})
            assert betrayed(told.replace(json.dumps(asked)[1:-1], "")) == []
            is_search = asked and not {"vf", "kf"} & set(asked)
            assert (OPEN in told) is not bool(is_search)


def test_a_tab_that_follows_is_told_nothing_of_it(
    page: Attacker, topic: str, admin: str, our_cluster: LocalCluster
) -> None:
    producer = Producer({"bootstrap.servers": our_cluster.bootstrap})
    with connect(
        f"ws://{page.host}/follow/{topic}", origin=Origin(page.origin),
        additional_headers={"Cookie": admin},
    ) as socket_:  # fmt: skip
        socket_.send(json.dumps({"do": "follow", "query": {}}))
        socket_.recv(timeout=WAIT_S)  # it has begun
        producer.produce(topic, f'{{"card": {{"number": "{PAN}", "brand": "later"}}}}', key=HOLDER)
        assert producer.flush(WAIT_S) == 0
        told = ""
        while "later" not in told:
            told = str(socket_.recv(timeout=WAIT_S))
            assert betrayed(told) == []


NAMES: Final = {"q": "text", "path": "json_path", "kf": "key_format", "vf": "value_format"}


def test_the_api_tells_nothing_of_it(page: Attacker, topic: str) -> None:
    token = bearer(page.token("masked", "admin"))
    for asked in ASKED:
        with case(asked):
            named = {NAMES.get(name, name): text for name, text in asked.items()}
            query = urlencode({"start": "earliest", **named})
            answer = page.ask(f"/api/v1/records/{topic}?{query}", **token)
            assert answer.status in (200, 422), answer.text
            assert betrayed(answer.text + str(answer.headers)) == []
            is_search = asked and not {"vf", "kf"} & set(asked)
            assert (OPEN in answer.text) is not bool(is_search)
    for offset in range(7):
        for each in ("", "?value_format=hex", "?value_format=avro&key_format=base64"):
            with case((offset, each)):
                answer = page.ask(f"/api/v1/records/{topic}/0/{offset}{each}", **token)
                assert (answer.status, betrayed(answer.text)) == (200, [])


def test_only_a_role_with_that_right_sees_it(page: Attacker, topic: str, admin: str) -> None:
    auditor = page.cookie_of("auditor")
    path = f"/record/{topic}/0/0?part=json"
    told = json.loads(page.ask(path, cookie=auditor).text)
    assert (told["key"], told["masked"], PAN in told["value"]) == (HOLDER, False, True)
    assert json.loads(page.ask(path, cookie=admin).text)["key"] == "***"
    viewer = page.cookie_of("victor")
    assert page.ask(path, cookie=viewer).status == 403
    query = urlencode({"since": "earliest", "q": PAN})
    assert PAN in page.ask(f"/messages/{topic}.jsonl?{query}", cookie=auditor).text
    token = bearer(page.token("audits", "auditor"))
    assert PAN in page.ask(f"/api/v1/records/{topic}/0/0", **token).text


@pytest.fixture
def line(
    our_cluster: LocalCluster, config: Path, tmp_path: Path
) -> Iterator[CommandLine]:  # whoever owns the data directory is an admin, and no auditor
    assert os.environ["PARTISCOPE_CONFIG"] == str(config)
    at = our_cluster.bootstrap
    found = CommandLine(bootstrap=at, bus=at, folder=tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize(
    "flags",
    [(), ("--json",), ("--format", "%k %s %h\n"), ("--value-format", "hex"), ("--filter", PAN),
     ("--key", "holder*"), ("--cel", f"value.card.number == '{PAN}'"), ("--value-format", "avro")],
    ids=str,
)  # fmt: skip
def test_a_command_shows_nothing_of_it(
    line: CommandLine, topic: str, flags: tuple[str, ...]
) -> None:
    said = line.run("tail", topic, "--offset", "earliest", "--exit-at-end", *flags)
    assert betrayed(said) == []
    is_filter = flags and flags[0] in ("--filter", "--key", "--cel")
    assert ("visa" in said) is not bool(is_filter)


def test_an_address_that_no_setting_names_lifts_no_rule(line: CommandLine, topic: str) -> None:
    other = line.bootstrap.split(",")[-1].replace("127.0.0.1", "localhost")
    words = ("browse", topic, "--partition", "0", "--offset", "0", "--bootstrap", other)
    for flags in ((), ("--json",), ("--value-format", "string"), ("--output", "-")):
        with case(flags):
            said = line.run(*words, *flags)
            assert (betrayed(said), "visa" in said) == ([], True)


def test_what_was_masked_is_not_sent_again(line: CommandLine, topic: str) -> None:
    said = line.run(
        "tail", topic, "--offset", "earliest", "--exit-at-end", "--count", "1", "--json"
    )
    (line.folder / "lines.jsonl").write_text(said)
    refused = line.run("produce", topic, "--file", "lines.jsonl", "--json-lines", status=2)
    assert "fields masked" in refused


def test_a_file_on_disk_shows_nothing_of_it(line: CommandLine, topic: str) -> None:
    said = line.run("segments", topic, "0", "--offset", "0", status=1)
    assert "masking rules" in said
