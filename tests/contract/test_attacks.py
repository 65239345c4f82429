"""Attacks on a page that others can reach, each with its answer. Raw requests: no browser helps."""

import re
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from control.access.roles import EVERYWHERE
from dashboard.server.login.sessions import NAME_ATTEMPTS_MAX
from dashboard.server.request_bounds import HEAD_BYTES_MAX, HEAD_S_MAX
from partiscope.access.users_file import hashed
from tests.support.attacker import SECRET, Attacker, page_with_users
from tests.support.cases import case
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.store_builder import StoreBuilder, SyntheticSizes

pytestmark = pytest.mark.thorough

SECRETS: Final = ("/rows/topics", "/export/topics.csv", "/export/journal.csv", "/_dash-layout",
                  "/_dash-dependencies", "/metrics", "/messages/orders.jsonl",
                  "/record/orders/0/0", "/report/mv-1.html", "/export/plan?name=x",
                  "/assets/partiscope.css", "/@x/rows/topics", "/rows/topics?cluster=x",
                  "//rows/topics", "/login/../rows/topics", "/health/../rows/topics")  # fmt: skip


def _read_all(socket_: ClientConnection) -> None:
    while True:
        socket_.recv(timeout=WAIT_S)


def _drip(raw: socket.socket, pieces: int) -> None:
    for _ in range(pieces):
        raw.sendall(b"x" * 1_000)
        time.sleep(0.0001)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacker]:
    with page_with_users(tmp_path_factory.mktemp("attacked")) as attacker:
        yield attacker


def test_without_a_login_nothing_is_told(page: Attacker) -> None:
    for path in SECRETS:
        with case(path):
            answer = page.ask(path)
            assert (answer.status, "topic-0" in answer.text) == (401, False), answer.text[:200]
    for path in ("/_dash-update-component", "/tab-gone/x", "/rows/topics", "/"):
        with case(f"POST {path}"):
            answer = page.ask(path, method="POST", body="{}", content_type="application/json")
            assert answer.status == 401
    assert page.ask("/health").text == "ok\n"


def test_a_view_leads_to_the_login_and_back(page: Attacker) -> None:
    answer = page.ask("/topics?q=lag>0", accept="text/html")
    assert (answer.status, answer.headers["location"]) == (
        303, f"/login?next={quote('/topics?q=lag>0', safe='')}",
    )  # fmt: skip
    assert page.log_in("alice", next="/topics?q=lag>0").headers["location"] == "/topics?q=lag>0"


def test_a_login_opens_the_page_and_a_logout_closes_it(page: Attacker) -> None:
    cookie = page.cookie_of("alice")
    assert "topic-0" in page.ask("/rows/topics", cookie=cookie).text
    assert page.ask("/logout", cookie=cookie).status == 405  # a link logs nobody out
    out = page.ask("/logout", method="POST", cookie=cookie, origin=page.origin)
    assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (303, True)
    assert page.ask("/rows/topics", cookie=cookie).status == 401


def test_the_cookie_is_out_of_reach(page: Attacker) -> None:
    told = page.log_in("alice").headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(told.split("; "))
    assert "Secure" not in told
    assert len(told.partition("=")[2].partition(";")[0]) >= 43  # 256 bits


@pytest.mark.parametrize(
    ("name", "password"),
    [("alice", "wrong"), ("nobody", SECRET), ("", ""), ("alice", ""), ("alice\0", SECRET),
     ("ALICE", SECRET), ("alice", SECRET + " ")],
)  # fmt: skip
def test_a_wrong_password_is_not_told_from_a_wrong_name(
    page: Attacker, name: str, password: str
) -> None:
    answer = page.log_in(name, password)
    assert (answer.status, answer.cookie) == (401, "")
    assert "Name or password is wrong." in answer.text


@pytest.mark.parametrize("change", ["removed", "role", "password"])
def test_a_session_ends_with_what_it_rests_on(page: Attacker, change: str) -> None:
    name = page.add(f"mallory.{change}", "admin")
    cookie = page.cookie_of(name)
    assert page.ask("/rows/topics", cookie=cookie).status == 200
    with connect(
        f"ws://{page.host}/_dash-ws-callback", origin=Origin(page.origin),
        additional_headers={"Cookie": cookie},
    ) as socket_:  # fmt: skip
        with page.users.changing() as found:
            if change == "removed":
                del found[name]
            elif change == "role":
                found[name] = replace(found[name], roles={EVERYWHERE: "viewer"})
            else:
                found[name] = replace(found[name], password=hashed("another password"))
        assert page.ask("/rows/topics", cookie=cookie).status == 401
        with pytest.raises(ConnectionClosed) as closed:
            _read_all(socket_)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


def test_a_session_is_never_chosen_by_who_logs_in(page: Attacker) -> None:
    name = page.cookie_of("alice").partition("=")[0]
    planted = f"{name}={'A' * 43}"
    answer = page.log_in("alice", cookie=planted)
    assert answer.cookie not in ("", planted)
    assert page.ask("/rows/topics", cookie=planted).status == 401
    own = page.cookie_of("alice")
    again = page.log_in("alice", cookie=own)
    assert page.ask("/rows/topics", cookie=own).status == 401  # the one before has ended
    assert page.ask("/rows/topics", cookie=again.cookie).status == 200


def test_a_cookie_that_is_odd_opens_nothing(page: Attacker) -> None:
    cookie = page.cookie_of("alice")
    name, _, token = cookie.partition("=")
    for odd in ("", "=", f"{name}=", f"{name}={token[:-1]}", f"{name}={token}x", f"{name}=é",
                f"{name}={'x' * 8_000}", f"{cookie}; {name}=x", f"{name}=x; {cookie}"):  # fmt: skip
        with case(odd[:60]):
            assert page.ask("/rows/topics", cookie=odd.encode().decode("latin-1")).status == 401


FOREIGN: Final[list[dict[str, str]]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1.evil.example"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_another_site_acts_in_nobodys_name(page: Attacker, headers: dict[str, str]) -> None:
    cookie = page.cookie_of("alice")
    given = {"origin": page.origin, **headers}
    for path in ("/login", "/logout", "/_dash-update-component", "/tab-gone/x"):
        answer = page.ask(path, method="POST", body="", cookie=cookie, **given)
        assert answer.status == 403, path
    assert page.log_in("alice", **headers).status == 403
    assert page.ask("/rows/topics", cookie=cookie).status == 200


def test_a_form_without_an_origin_is_no_form_of_a_browser(page: Attacker) -> None:
    for path in ("/login", "/logout"):
        answer = page.ask(path, method="POST", body=urlencode({"name": "a", "password": "b"}))
        assert answer.status == 403


@pytest.mark.parametrize(
    ("origin", "has_cookie"),
    [("https://evil.example", True), (None, True), ("null", True), ("own", False)],
)
@pytest.mark.parametrize("path", ["/_dash-ws-callback", "/follow/topic-0"])
def test_a_websocket_is_opened_by_the_page_alone(
    page: Attacker, path: str, origin: str | None, has_cookie: bool
) -> None:
    headers = {"Cookie": page.cookie_of("alice")} if has_cookie else {}
    told = None if origin is None else Origin(page.origin if origin == "own" else origin)
    with pytest.raises((InvalidStatus, ConnectionClosed)) as refused, connect(
        f"ws://{page.host}{path}", origin=told,
        additional_headers=headers,
    ) as socket_:  # fmt: skip
        socket_.recv(timeout=WAIT_S)
    if isinstance(refused.value, InvalidStatus):
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "evil",
     "/\t/evil.example", "/a\r\nSet-Cookie: x=y", "///evil.example", "/login?next=/login",
     "http:evil.example", "\\\\evil.example", "/%0d%0aX: y\n", "/é"],
)  # fmt: skip
def test_a_login_leads_to_no_other_site(page: Attacker, wanted: str) -> None:
    answer = page.log_in("alice", next=wanted)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    asked = page.ask(f"/login?next={quote(wanted)}")
    assert re.findall(r'name="next" value="([^"]*)"', asked.text) == ["/"]


def test_script_in_a_name_is_text(page: Attacker) -> None:
    evil = '"><script>alert(1)</script>'
    answer = page.log_in(evil, "wrong")
    assert "<script" not in answer.text
    assert "&lt;script&gt;" in answer.text
    assert "<script" not in page.ask(f"/login?next={quote('/' + evil)}").text


def test_every_answer_has_the_headers_that_protect_it(page: Attacker) -> None:
    cookie = page.cookie_of("alice")
    for path, given in (
        ("/login", {}), ("/rows/topics", {}), ("/", {"cookie": cookie}),
        ("/rows/topics", {"cookie": cookie}), ("/", {"host": "evil.example"}),
    ):  # fmt: skip
        headers = page.ask(path, **given).headers
        policy = headers["content-security-policy"]
        assert {"default-src 'self'", "frame-ancestors 'none'", "form-action 'self'",
                "base-uri 'none'"} <= set(policy.split("; "))  # fmt: skip
        assert "unsafe-eval" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    ["/assets/../../data/users.json", "/assets/..%2f..%2fdata%2fusers.json",
     "/assets/%2e%2e/%2e%2e/partiscope.toml", "/assets/....//....//etc/passwd",
     "/_dash-component-suites/dash/../../../../etc/passwd",
     "/_dash-component-suites/dash/%2e%2e/%2e%2e/setup.py",
     "/messages/..%2f..%2f..%2fetc%2fpasswd.jsonl", "/report/..%2f..%2fetc%2fpasswd.html",
     "/record/..%2f..%2fetc/0/0", "/export/..%2f..%2fusers.json", "/rows/..%2fusers"],
)  # fmt: skip
def test_a_path_leads_to_no_other_file(page: Attacker, path: str) -> None:
    answer = page.ask(path, cookie=page.cookie_of("alice"))
    assert not {"argon2", "root:", "[project]"} & set(
        re.findall(r"argon2|root:|\[project\]", answer.text)
    )
    assert answer.status in (400, 403, 404, 502) or "text/html" in answer.headers["content-type"]


def test_a_name_that_points_here_is_no_name_of_the_page(page: Attacker) -> None:
    for host in ("evil.example", "evil.example:8050", "127.0.0.1.evil.example", "user@127.0.0.1"):
        with case(host):
            assert page.ask("/login", host=host).status == 403


def test_a_header_of_a_proxy_that_is_not_trusted_is_nothing(page: Attacker) -> None:
    for header in ("x_forwarded_user", "x_remote_user", "remote_user", "x_auth_request_user"):
        assert page.ask("/rows/topics", **{header: "alice"}).status == 401


def test_large_bodies_and_heads_are_refused(page: Attacker) -> None:
    assert page.log_in("x" * 100_000).status == 413
    for path in ("/login", "/_dash-update-component", "/"):
        answer = page.ask(path, method="POST", origin=page.origin, content_length=str(10**12))
        assert answer.status == 413
    with socket.create_connection(("127.0.0.1", page.server.port), WAIT_S) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            _drip(raw, HEAD_BYTES_MAX // 1_000 + 5_000)


def test_a_head_that_comes_by_the_byte_is_cut_off(page: Attacker) -> None:
    with socket.create_connection(("127.0.0.1", page.server.port), WAIT_S) as raw:
        began_s = time.monotonic()
        raw.sendall(b"GET /login HTTP/1.1\r\nHost: ")
        raw.settimeout(0.5)
        while True:
            try:
                raw.sendall(b"x")
                if raw.recv(1) == b"":
                    break
            except TimeoutError:
                assert time.monotonic() - began_s < 3 * HEAD_S_MAX + WAIT_S
            except OSError:
                break
        assert time.monotonic() - began_s > HEAD_S_MAX / 2


def test_a_password_is_not_guessed(page: Attacker) -> None:
    name = page.add("guessed")
    for number in range(NAME_ATTEMPTS_MAX):
        assert page.log_in(name, f"guess {number}").status == 401
    for password in ("one more", SECRET):
        answer = page.log_in(name, password, x_forwarded_for=f"10.0.0.{len(password)}")
        assert (answer.status, answer.cookie) == (429, "")
        assert 0 < int(answer.headers["retry-after"]) <= 301


def test_the_header_of_the_trusted_proxy_is_believed_from_its_address_alone(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTISCOPE_ACCESS__PROXY_HEADER", "X-Forwarded-User")
    for address, status in (("127.0.0.1", 200), ("10.9.9.9", 401)):
        monkeypatch.setenv("PARTISCOPE_ACCESS__PROXY_ADDRESS", address)
        with page_with_users(tmp_path_factory.mktemp("proxied")) as page:
            assert page.ask("/rows/topics", x_forwarded_user="victor").status == status
            assert page.ask("/rows/topics", x_forwarded_user="stranger").status == 401
            assert page.ask("/rows/topics").status == 401
            assert page.ask("/rows/topics", x_forwarded_user="victor", X_Forwarded_User="alice"
                            ).status == 401  # fmt: skip


def test_beyond_loopback_a_page_without_users_does_not_start(tmp_path: Path) -> None:
    store = tmp_path / "store"
    StoreBuilder(store).write_synthetic(
        SyntheticSizes(topics=1, partitions=1, groups=1), history_s=1
    )
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with case(host), pytest.raises(AssertionError, match="nobody would have to log in"):
            PageServer(store, "--host", host).__enter__()
