"""The API: its tables are those of the screens, its document is true, and only a token opens it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from control.access.roles import EVERYWHERE
from dashboard.server.api.tables import tables
from dashboard.server.api.token_check import BODY_BYTES_MAX
from dashboard.server.login.sessions import ADDRESS_ATTEMPTS_MAX
from partiscope.access.tokens_file import PREFIX
from tests.support.attacker import Answer, Attacker, bearer, page_with_users
from tests.support.cases import case
from tests.support.page_server import ROOT
from tests.support.settle import wait_until

pytestmark = pytest.mark.thorough

TOPICS: Final = "/api/v1/tables/topics"
NEED_A_CLUSTER: Final = {"journal", "moves"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacker]:
    with page_with_users(tmp_path_factory.mktemp("api")) as attacker:
        yield attacker


@pytest.fixture(scope="module")
def viewer(page: Attacker) -> dict[str, str]:
    return bearer(page.token("viewer"))


@pytest.fixture(scope="module")
def document(page: Attacker, viewer: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.ask("/api/v1/openapi.json", **viewer).text)
    return found


def error_of(answer: Answer) -> dict[str, Any]:
    """What, why and what next, all told."""
    error: dict[str, Any] = json.loads(answer.text)["error"]
    assert all(error[name] for name in ("what", "why", "next")), error
    return error


def test_the_document_is_one_of_openapi_and_names_every_table(document: dict[str, Any]) -> None:
    validate(document)
    assert document["openapi"].startswith("3.1")
    told = {path.rpartition("/")[2] for path in document["paths"] if "/tables/" in path}
    assert told == {table.kind.name for table in tables()}


def test_the_reference_is_current() -> None:
    script = ROOT / "scripts" / "api_reference.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_table_answers_as_the_document_says(
    page: Attacker, viewer: dict[str, str], document: dict[str, Any]
) -> None:
    for path, told in document["paths"].items():
        if "/tables/" not in path:
            continue
        with case(path):
            answer = page.ask(f"{path}?limit=1000", **viewer)
            is_there = path.rpartition("/")[2] not in NEED_A_CLUSTER
            assert answer.status == (200 if is_there else 503), answer.text
            schema = told["get"]["responses"][str(answer.status)]["content"]["application/json"]
            whole = {**schema["schema"], "components": document["components"]}
            Draft202012Validator(whole).validate(json.loads(answer.text))


def test_filter_sort_columns_and_pages(page: Attacker, viewer: dict[str, str]) -> None:
    def rows(query: str) -> Any:
        return json.loads(page.ask(f"{TOPICS}?{query}", **viewer).text)

    every = [row["topic"] for row in rows("")["topics"]]
    assert every == ["topic-0", "topic-1"]
    found = rows("sort=-topic&limit=1&columns=topic,partitions")
    assert found["topics"] == [{"topic": "topic-1", "partitions": 2}]
    assert (found["total"], found["matching"]) == (2, 2)
    assert [row["topic"] for row in rows("sort=-topic&limit=1&offset=1")["topics"]] == ["topic-0"]
    assert rows("offset=7")["topics"] == []
    found = rows("filter=topic:topic-1")
    assert (found["total"], found["matching"], len(found["topics"])) == (2, 1, 1)
    one = json.loads(page.ask("/api/v1/tables/partitions?scope=topic-1", **viewer).text)
    assert {row["topic"] for row in one["partitions"]} == {"topic-1"}


@pytest.mark.parametrize(
    ("query", "field"),
    [("limit=0", "limit"), ("limit=1001", "limit"), ("offset=-1", "offset"), ("foo=1", "foo"),
     ("at=yesterday", "at"), ("filter=none>0", ""), ("sort=none", ""), ("columns=none", ""),
     ("limit=x", "limit"), ("filter=%22", "")],
)  # fmt: skip
def test_a_wrong_parameter_is_named(
    page: Attacker, viewer: dict[str, str], query: str, field: str
) -> None:
    answer = page.ask(f"{TOPICS}?{query}", **viewer)
    error = error_of(answer)
    assert (answer.status, list(error["fields"])) == (422, [field] if field else [])


def test_what_is_not_there_is_told(page: Attacker, viewer: dict[str, str]) -> None:
    for path, method, status in (
        ("/api/v1/tables/none", "GET", 404), ("/api", "GET", 404), ("/api/v2", "GET", 404),
        (TOPICS, "POST", 405), (f"{TOPICS}?cluster=none", "GET", 404), (f"{TOPICS}/", "GET", 404),
        (f"{TOPICS}?at=2001-01-01T00:00", "GET", 404), ("/api/v1/tables/..%2f..", "GET", 404),
    ):  # fmt: skip
        with case(path):
            answer = page.ask(path, method=method, **viewer)
            assert answer.status == status
            error_of(answer)


def test_nothing_but_a_token_opens_the_api(page: Attacker) -> None:
    cookie, secret = page.cookie_of("alice"), page.token("odd")
    for number, headers in enumerate([
        {}, {"cookie": cookie}, {"cookie": f"token={secret}"}, {"authorization": secret},
        {"authorization": f"Basic {secret}"}, {"authorization": "Bearer "},
        {"authorization": f"Bearer {secret}x"}, {"authorization": f"Bearer {secret[:-1]}"},
        {"authorization": f"Bearer {secret} {secret}"}, {"authorization": f"Bearer {'x' * 300}"},
        {"authorization": "Bearer \xe9\xe9"}, {"x_forwarded_user": "alice"},
        {"authorization": f"Bearer {PREFIX}{'A' * 43}"},
    ]):  # fmt: skip
        with case(number):
            answer = page.ask(TOPICS, **headers)
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            error_of(answer)
    for path in ("/api/v1/openapi.json", f"{TOPICS}?token={secret}", "/%61pi/v1/tables/topics"):
        with case(path):
            assert page.ask(path).status == 401
    twice = {**bearer(secret), "Authorization": f"Bearer {secret}"}
    assert page.ask(TOPICS, **twice).status == 401
    assert page.ask(TOPICS, **bearer(secret)).status == 200


def test_the_page_never_answers_for_the_api(page: Attacker, viewer: dict[str, str]) -> None:
    cookie = page.cookie_of("alice")
    for path in ("/@x/api/v1/tables/topics", "//api/v1/tables/topics", "/./api/v1/tables/topics",
                 "/login/../api/v1/tables/topics"):  # fmt: skip
        with case(path):
            assert "topic-0" not in page.ask(path, cookie=cookie).text
            assert "topic-0" not in page.ask(path, **viewer).text
    for path in ("/rows/topics", "/export/topics.csv", "/"):
        with case(path):
            assert page.ask(path, **viewer).status == 401  # a token is no login of the page


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec_fetch_site": "cross-site"},
     {"host": "evil.example"}],
    ids=str,
)  # fmt: skip
def test_another_site_asks_nothing_even_with_a_token(
    page: Attacker, viewer: dict[str, str], headers: dict[str, str]
) -> None:
    answer = page.ask(TOPICS, **viewer, **headers)
    assert (answer.status, "topic-0" in answer.text) == (403, False)
    assert page.ask("/api/v1/openapi.json", **viewer, **headers).status == 403


def test_a_token_ends_when_it_expires_is_removed_or_gets_another_role(page: Attacker) -> None:
    short = bearer(page.token("short", lasts_ms=1))
    wait_until(lambda: page.ask(TOPICS, **short).status == 401, "the token has expired")
    assert "short expired at" in error_of(page.ask(TOPICS, **short))["why"]
    gone = bearer(page.token("gone"))
    assert page.ask(TOPICS, **gone).status == 200
    with page.tokens.changing() as found:
        del found["gone"]
    assert page.ask(TOPICS, **gone).status == 401
    kept = bearer(page.token("kept"))
    page.tokens.path.rename(page.tokens.path.with_suffix(".away"))
    try:
        assert page.ask(TOPICS, **kept).status == 401
        page.tokens.path.write_text("{")
        assert page.ask(TOPICS, **kept).status == 401
    finally:
        page.tokens.path.with_suffix(".away").rename(page.tokens.path)
    assert page.ask(TOPICS, **kept).status == 200


def test_the_last_use_of_a_token_is_kept(page: Attacker) -> None:
    before_ms = time.time_ns() // 1_000_000
    secret = page.token("used")
    assert page.ask(TOPICS, **bearer(secret)).status == 200
    wait_until(lambda: page.tokens.tokens()["used"].used_ms is not None, "the use is written down")
    used_ms = page.tokens.tokens()["used"].used_ms
    assert used_ms is not None
    assert before_ms <= used_ms <= time.time_ns() // 1_000_000
    assert secret not in page.tokens.path.read_text()
    assert page.tokens.tokens()["used"].roles == {EVERYWHERE: "viewer"}


def test_a_body_without_end_is_refused(page: Attacker, viewer: dict[str, str]) -> None:
    answer = page.ask(TOPICS, method="POST", body=b"x" * (BODY_BYTES_MAX + 1), **viewer)
    assert answer.status == 413
    error_of(answer)


def test_scripts_in_parameters_come_back_as_json(page: Attacker, viewer: dict[str, str]) -> None:
    evil = "%3Cscript%3Ealert(1)%3C/script%3E"
    for path in (f"{TOPICS}?filter={evil}%3E1", f"/api/{evil}", f"{TOPICS}?cluster={evil}"):
        with case(path):
            answer = page.ask(path, **viewer)
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"


def test_wrong_tokens_are_counted_and_right_ones_go_on(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with page_with_users(tmp_path_factory.mktemp("guessed")) as page:
        right = bearer(page.token("right"))
        for _ in range(ADDRESS_ATTEMPTS_MAX):
            assert page.ask(TOPICS, **bearer(PREFIX + "A" * 43)).status == 401
        answer = page.ask(TOPICS, **bearer(PREFIX + "A" * 43))
        assert (answer.status, bool(error_of(answer))) == (429, True)
        assert page.ask(TOPICS, **right).status == 200
