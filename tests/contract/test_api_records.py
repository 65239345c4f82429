"""Records by the API: searched, read on, one whole; only by a token that may read them."""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from jsonschema import Draft202012Validator

from tests.contract.operations_rig import unique
from tests.support.attacker import Answer, Attacker, bearer, page_with_users
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S

pytestmark = pytest.mark.thorough

PATH: Final = "/api/v1/records"
COUNT: Final = 25
LARGE: Final = 200_000


@pytest.fixture(scope="module")
def topic(our_cluster: LocalCluster) -> str:
    name = unique("api-records")
    client = AdminClient({"bootstrap.servers": our_cluster.bootstrap})
    client.create_topics([NewTopic(name, 2, 1)])[name].result(WAIT_S)
    producer = Producer({"bootstrap.servers": our_cluster.bootstrap})
    for number in range(COUNT):
        value = json.dumps({"n": number, "even": number % 2 == 0})
        producer.produce(name, value, key=f"k{number}", partition=number % 2, timestamp=number + 1)
    producer.produce(name, "x" * LARGE, partition=0, timestamp=COUNT + 1)
    assert producer.flush(WAIT_S) == 0
    return name


@pytest.fixture(scope="module")
def page(our_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacker]:
    at = our_cluster.bootstrap
    with page_with_users(tmp_path_factory.mktemp("records"), "--bootstrap", at, "--bus", at) as it:
        yield it


@pytest.fixture(scope="module")
def reader(page: Attacker) -> dict[str, str]:
    return bearer(page.token("reader", "operator"))


def asked(page: Attacker, path: str, headers: dict[str, str], **query: object) -> Answer:
    return page.ask(f"{PATH}/{path}?{urlencode(query)}", **headers)


def found(page: Attacker, path: str, headers: dict[str, str], **query: object) -> dict[str, Any]:
    answer = asked(page, path, headers, **query)
    assert answer.status == 200, answer.text
    told: dict[str, Any] = json.loads(answer.text)
    return told


def numbers(told: dict[str, Any]) -> list[int]:
    return [
        it["decoded"]["value"]["document"]["n"] for it in told["records"] if not it["is_cut"]
    ]  # fmt: skip


def test_a_search_finds_what_the_page_finds(
    page: Attacker, topic: str, reader: dict[str, str]
) -> None:
    for query, wanted in (
        ({"text": '"n": 7'}, [7]), ({"key": "k1*"}, [1, *range(10, 20)]),
        ({"cel": "value.n > 22"}, [23, 24]), ({"json_path": "$[?@ == 3]"}, [3]),
        ({"partition": "1", "limit": 3}, [1, 3, 5]), ({"regex": "k2[34]"}, [23, 24]),
        ({"start": "-1", "partition": "1"}, [23]), ({"start": "12", "partition": "0"}, [24]),
    ):  # fmt: skip
        with case(query):
            told = found(page, topic, reader, **{"start": "earliest", **query})
            assert numbers(told) == wanted


def test_reading_on_gives_every_record_once(
    page: Attacker, topic: str, reader: dict[str, str]
) -> None:
    for start, is_sorted in (("earliest", True), ("-1000", False)):
        with case(start):
            told = found(page, topic, reader, start=start, limit=10)
            every = numbers(told)
            while told["next"]:
                told = found(page, topic, reader, start=start, limit=10, next=told["next"])
                every = [*every, *numbers(told)] if is_sorted else [*numbers(told), *every]
            assert every == list(range(COUNT))


def test_a_large_record_is_cut_in_a_list_and_whole_alone(
    page: Attacker, topic: str, reader: dict[str, str]
) -> None:
    (large,) = found(page, topic, reader, partition="0", start="-1")["records"]
    assert (large["is_cut"], len(large["value"]) < LARGE) == (True, True)
    one = found(page, f"{topic}/0/{large['offset']}", reader)
    assert (one["is_cut"], len(one["value"])) == (False, LARGE)
    hexed = found(page, f"{topic}/0/0", reader, value_format="hex")
    assert hexed["decoded"]["value"]["format"] == "hex"


def test_answers_are_as_the_document_says(
    page: Attacker, topic: str, reader: dict[str, str]
) -> None:
    document = json.loads(page.ask("/api/v1/openapi.json", **reader).text)
    for path, asked_for in (("{topic}", topic), ("{topic}/{partition}/{offset}", f"{topic}/1/0")):
        with case(path):
            told = document["paths"][f"{PATH}/{path}"]["get"]["responses"]["200"]
            schema = told["content"]["application/json"]["schema"]
            whole = {**schema, "components": document["components"]}
            Draft202012Validator(whole).validate(found(page, asked_for, reader))


@pytest.mark.parametrize(
    ("query", "field"),
    [({"start": "yesterday?"}, "start"), ({"until": "x"}, "until"), ({"limit": 0}, "limit"),
     ({"partition": "x"}, "partition"), ({"limit": 1001}, "limit"), ({"scan": 0}, "scan"),
     ({"cel": "("}, "cel"), ({"regex": "("}, "regex"), ({"json_path": "$["}, "json_path"),
     ({"key_format": "none"}, "key_format"), ({"foo": 1}, "foo"), ({"next": "f"}, "next"),
     ({"next": "f,0:1,x"}, "next"), ({"next": f"f,0:{1 << 63}"}, "next"),
     ({"next": f"b,{1 << 31}:0"}, "next"), ({"text": "\0" * 5_000}, "text")],
    ids=str,
)  # fmt: skip
def test_a_wrong_parameter_of_a_search_is_named(
    page: Attacker, topic: str, reader: dict[str, str], query: dict[str, object], field: str
) -> None:
    answer = asked(page, topic, reader, **query)
    assert answer.status == 422, answer.text
    assert list(json.loads(answer.text)["error"]["fields"]) == [field]


def test_what_is_not_there_has_its_status(
    page: Attacker, topic: str, reader: dict[str, str]
) -> None:
    for path, query, status in (
        ("none-such", {}, 404), (topic, {"partition": "9"}, 404), (f"{topic}/0/99999", {}, 404),
        (f"{topic}/9/0", {}, 404), (f"{topic}/x/0", {}, 422), (f"{topic}/0/{1 << 63}", {}, 422),
        ("..%2f..", {}, 404), (topic, {"cluster": "none"}, 404),
    ):  # fmt: skip
        with case((path, query)):
            answer = asked(page, path, reader, **query)
            assert answer.status == status, answer.text
            assert json.loads(answer.text)["error"]["why"]


def test_only_a_token_that_reads_records_is_told_any(page: Attacker, topic: str) -> None:
    viewer, cookie = bearer(page.token("looks", "viewer")), page.cookie_of("alice")
    for path in (topic, f"{topic}/0/0"):
        with case(path):
            for headers, status in ((viewer, 403), ({}, 401), ({"cookie": cookie}, 401)):
                answer = asked(page, path, headers)
                assert (answer.status, '"n"' in answer.text) == (status, False)
