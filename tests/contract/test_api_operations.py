"""Operations by the API: preview, confirmation by its hash, journal, news of a reassignment."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient
from jsonschema import Draft202012Validator

from tests.contract.operations_rig import ExecutorProcess, unique
from tests.support.attacker import Answer, Attacker, bearer, page_with_users
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.paced_producer import fill
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]

Headers = dict[str, str]
PREVIEWS: Final = "/api/v1/operations/{}/previews"


@pytest.fixture(scope="module")
def page(our_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacker]:
    at = our_cluster.bootstrap
    folder = tmp_path_factory.mktemp("api-acts")
    with page_with_users(folder, "--bootstrap", at, "--bus", at) as attacker:
        yield attacker


@pytest.fixture(scope="module")
def admin(page: Attacker) -> Headers:
    return bearer(page.token("admin", "admin"))


@pytest.fixture(scope="module")
def document(page: Attacker, admin: Headers) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.ask("/api/v1/openapi.json", **admin).text)
    return found


def post(page: Attacker, path: str, body: object, headers: Headers) -> Answer:
    return page.ask(
        path, method="POST", body=json.dumps(body), content_type="application/json", **headers
    )


def previewed(page: Attacker, name: str, headers: Headers, **fields: object) -> dict[str, Any]:
    answer = post(page, PREVIEWS.format(name), {"fields": fields}, headers)
    assert answer.status == 201, answer.text
    found: dict[str, Any] = json.loads(answer.text)
    return found


def confirmed(page: Attacker, preview: dict[str, Any], headers: Headers, **more: str) -> Answer:
    path = f"/api/v1/previews/{preview['preview']}/confirmation"
    return post(page, path, {"hash": preview["hash"], **more}, headers)


def topics(cluster: LocalCluster) -> set[str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return set(admin.list_topics(timeout=WAIT_S).topics)


def test_what_is_confirmed_happens_once_and_the_journal_names_the_token(
    page: Attacker, admin: Headers, our_cluster: LocalCluster
) -> None:
    name = unique("api-made")
    preview = previewed(page, "create_topic", admin, topic=name, partitions=2)
    assert (preview["is_needed"], name in topics(our_cluster)) == (True, False)
    for wrong in ("", "0" * 64, preview["hash"][:-1]):
        answer = confirmed(page, {**preview, "hash": wrong}, admin)
        assert answer.status == 409, answer.text
    assert name not in topics(our_cluster)
    answer = confirmed(page, preview, admin, reason="a test")
    assert answer.status == 200, answer.text
    assert name in topics(our_cluster)
    assert confirmed(page, preview, admin).text == answer.text
    lines = json.loads(page.ask(f"/api/v1/tables/journal?filter={name}", **admin).text)["journal"]
    told = [(it["who"], it["outcome"], it["reason"]) for it in lines]
    assert told == [("token:admin (api, 127.0.0.1)", "done", "a test")]


def test_a_token_does_what_its_role_has_and_confirms_its_own(
    page: Attacker, admin: Headers, our_cluster: LocalCluster
) -> None:
    viewer = bearer(page.token("looks"))
    name = unique("api-refused")
    for operation in ("create_topic", "produce", "delete_topic"):
        with case(operation):
            answer = post(page, PREVIEWS.format(operation), {"fields": {"topic": name}}, viewer)
            assert answer.status == 403
            assert "token:looks has the role viewer" in json.loads(answer.text)["error"]["why"]
    refused = json.loads(page.ask("/api/v1/operations", **viewer).text)["operations"]
    assert all("viewer" in it["why_not"] for it in refused)
    preview = previewed(page, "create_topic", admin, topic=name)
    other = bearer(page.token("other", "admin"))
    for headers in (viewer, other):
        assert confirmed(page, preview, headers).status == 410
    with page.tokens.changing() as found:
        del found["other"]
    assert confirmed(page, preview, other).status == 401
    assert name not in topics(our_cluster)


def test_what_destroys_wants_its_word(
    page: Attacker, admin: Headers, our_cluster: LocalCluster
) -> None:
    name = unique("api-gone")
    assert confirmed(page, previewed(page, "create_topic", admin, topic=name), admin).status == 200
    preview = previewed(page, "delete_topic", admin, topic=name)
    assert preview["word"] == name
    for typed in ("", "yes", name.upper()):
        assert confirmed(page, preview, admin, typed=typed).status == 422
    assert name in topics(our_cluster)
    assert confirmed(page, preview, admin, typed=name).status == 200
    wait_until(lambda: name not in topics(our_cluster), "the topic is gone")


def test_records_are_sent_once_however_often_it_is_confirmed(
    page: Attacker, admin: Headers, our_cluster: LocalCluster
) -> None:
    name = unique("api-sent")
    assert confirmed(page, previewed(page, "create_topic", admin, topic=name), admin).status == 200
    preview = previewed(page, "produce", admin, topic=name, count=3, value="x")
    for _ in range(3):
        answer = confirmed(page, preview, admin)
        assert (answer.status, "3 records" in answer.text) == (200, True), answer.text


def test_every_operation_answers_as_the_document_says(
    page: Attacker, document: dict[str, Any]
) -> None:
    operator = bearer(page.token("asks", "operator"))
    paths = [it for it in document["paths"] if it.endswith("/previews")]
    assert len(paths) == 25
    for path in paths:
        bodies: list[object] = [
            {}, {"fields": {}}, {"fields": {"none": "1"}}, {"none": 1}, [], "x",
            {"fields": {"topic": unique("none"), "reason": "x"}},
        ]  # fmt: skip
        for body in bodies:
            with case(path, body):
                answer = post(page, path, body, operator)
                told = document["paths"][path]["post"]["responses"]
                assert answer.status < 500
                schema = told[str(answer.status)]["content"]["application/json"]["schema"]
                whole = {**schema, "components": document["components"]}
                Draft202012Validator(whole).validate(json.loads(answer.text))


def test_a_reassignment_is_planned_confirmed_and_watched_to_its_end(
    page: Attacker,
    admin: Headers,
    our_cluster: LocalCluster,
    document: dict[str, Any],
    tmp_path: Path,
) -> None:
    name = unique("api-moved")
    fields = {"topic": name, "partitions": 1, "replication_factor": 1}
    assert confirmed(page, previewed(page, "create_topic", admin, **fields), admin).status == 200
    fill(our_cluster.bootstrap, name, {0: 10_000})
    found = AdminClient({"bootstrap.servers": our_cluster.bootstrap}).list_topics(timeout=WAIT_S)
    (was,) = found.topics[name].partitions[0].replicas
    goes = next(it for it in found.brokers if it != was)
    preview = previewed(page, "reassign", admin, by_hand=f"{name}-0: {goes}", spread="none")
    assert preview["plan"] == [{"topic": name, "partition": 0, "from": [was], "to": [goes]}]
    file = {"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [goes]}]}
    of_file = previewed(page, "reassign", admin, by_hand=json.dumps(file, indent=2))
    assert of_file["plan"] == preview["plan"]
    answer = confirmed(page, preview, admin)
    assert answer.status == 200, answer.text
    told = json.loads(answer.text)
    move = told["params"]["move"]
    assert told["view"] == f"moves/{move}"
    secret = page.token("watches")
    with closing(http.client.HTTPConnection(page.host, timeout=WAIT_S)) as connection:
        headers = {"Authorization": f"Bearer {secret}"}
        connection.request("GET", f"/api/v1/moves/{move}/events", headers=headers)
        stream = connection.getresponse()
        assert (stream.status, stream.readline()) == (200, b"event: move\n")
        with page.tokens.changing() as tokens:
            del tokens["watches"]
        assert b"event: end" not in stream.read()  # it ends with the token, not with the move
    log = tmp_path / "executor.log"
    with ExecutorProcess(bus=our_cluster.bootstrap, log=log, watched=our_cluster.bootstrap):
        news = page.ask(f"/api/v1/moves/{move}/events", **admin)
    assert news.headers["content-type"].startswith("text/event-stream")
    assert news.text.rstrip().endswith('event: end\ndata: "done"'), news.text[-500:]
    assert json.loads(page.ask(f"/api/v1/moves/{move}", **admin).text)["outcome"] == "done"
    assert page.ask("/api/v1/moves/mv-none", **admin).status == 404
    for table in ("moves", "journal"):
        path = f"/api/v1/tables/{table}"
        rows = page.ask(f"{path}?filter={move}&limit=10", **admin)
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]
        whole = {**schema["application/json"]["schema"], "components": document["components"]}
        Draft202012Validator(whole).validate(json.loads(rows.text))
        assert json.loads(rows.text)["matching"] == 1
