"""The page behind nginx, as the documents configure it: TLS, a login, and no other web site."""

import base64
import getpass
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from tests.support.attacker import page_with_users
from tests.support.certificates import make_certificate
from tests.support.node_cluster import ROOT
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder

NGINX: Final = shutil.which("nginx")
NAME: Final = "partiscope.example.com"
LOGIN: Final = "Basic " + base64.b64encode(b"op:secret").decode()
CALLBACKS: Final = "/_dash-ws-callback"

pytestmark = pytest.mark.skipif(NGINX is None, reason="no nginx: apt-get install nginx-light")


def documented(folder: Path, place: int, *, page: int, port: int, sign_on: int = 0) -> str:
    """A configuration of docs/operate/security.md, with ports and files of this test."""
    text = (ROOT / "docs/operate/security.md").read_text()
    found = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)[place]
    cert, key = make_certificate(folder, "partiscope")
    hashed = subprocess.run(
        ("openssl", "passwd", "-apr1", "secret"), check=True, capture_output=True, text=True
    ).stdout
    (folder / "partiscope.htpasswd").write_text(f"op:{hashed}")
    found = found.replace("127.0.0.1:8050", f"127.0.0.1:{page}").replace(
        "listen 443", f"listen 127.0.0.1:{port}"
    )
    found = found.replace("127.0.0.1:4180", f"127.0.0.1:{sign_on}")
    for named, file in (("pem", cert), ("key", key), ("htpasswd", folder / "partiscope.htpasswd")):
        found = found.replace(f"/etc/nginx/partiscope.{named}", str(file))
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"user {getpass.getuser()}; daemon off; pid {folder}/nginx.pid; error_log stderr;\n"
        f"events {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{found}}}\n"
    )


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a proxy with a page behind it."""
    folder = tmp_path_factory.mktemp("proxied")
    store = StoreBuilder(folder / "store")
    (port,) = free_ports(1)
    with (
        PageServer(store.folder) as page,
        nginx(folder, documented(folder, 0, page=page.port, port=port), port),
    ):
        yield port


class SignOn(BaseHTTPRequestHandler):
    """Knows a login by its cookie, as oauth2-proxy does."""

    def do_GET(self) -> None:
        name = self.headers.get("Cookie", "").partition("sso=")[2]
        self.send_response(202 if name else 401)
        self.send_header("X-Auth-Request-Preferred-Username", name)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is told."""


@pytest.fixture(scope="module")
def signed_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """The port of a proxy that asks a single sign-on, and a token for the API."""
    folder = tmp_path_factory.mktemp("signed-on")
    (port,) = free_ports(1)
    with (
        pytest.MonkeyPatch.context() as settings,
        ThreadingHTTPServer(("127.0.0.1", 0), SignOn) as sign_on,
    ):
        settings.setenv("PARTISCOPE_ACCESS__PROXY_HEADER", "X-Forwarded-User")
        settings.setenv("PARTISCOPE_ACCESS__PROXY_ADDRESS", "127.0.0.1")
        threading.Thread(target=sign_on.serve_forever, daemon=True).start()
        with page_with_users(folder) as page:
            at = int(page.host.rpartition(":")[2])
            config = documented(folder, 1, page=at, port=port, sign_on=sign_on.server_port)
            with nginx(folder, config, port):
                yield port, page.token("reads")
        sign_on.shutdown()


@contextmanager
def nginx(folder: Path, text: str, port: int) -> Iterator[None]:
    config = folder / "nginx.conf"
    config.write_text(text)
    assert NGINX is not None
    running = subprocess.Popen((NGINX, "-c", str(config), "-p", str(folder)))
    try:
        wait_until(lambda: _listens(port), "nginx listens")
        yield
    finally:
        running.terminate()
        running.wait(WAIT_S)


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def ask(port: int, path: str, method: str = "GET", **headers: str) -> int:
    """The status of an answer."""
    unchecked = ssl._create_unverified_context()
    connection = HTTPSConnection("127.0.0.1", port, context=unchecked, timeout=WAIT_S)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers={"Host": NAME, **named})
        return connection.getresponse().status
    finally:
        connection.close()


def test_whoever_logs_in_sees_the_page_and_nobody_else(proxied: int) -> None:
    assert ask(proxied, "/health") == 401
    assert ask(proxied, "/health", Authorization=LOGIN) == 200
    assert ask(proxied, "/topics", Authorization=LOGIN) == 200


def test_the_page_answers_its_own_site_and_no_other(proxied: int) -> None:
    websocket = {
        "Authorization": LOGIN,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    own, other = f"https://{NAME}", "https://other.example.com"
    assert ask(proxied, CALLBACKS, Origin=own, **websocket) == 101
    assert ask(proxied, CALLBACKS, Origin=other, **websocket) == 403
    assert ask(proxied, "/topics", Authorization=LOGIN, Origin=own) == 200
    for method in ("GET", "POST"):
        for path in ("/topics", "/export/topics.json"):
            status = ask(proxied, path, method, Authorization=LOGIN, Origin=other)
            assert status == 403, (method, path)


def test_a_single_sign_on_names_who_asks_and_tokens_need_none(signed_on: tuple[int, str]) -> None:
    port, token = signed_on
    assert ask(port, "/topics") == 302
    assert ask(port, "/topics", X_Forwarded_User="alice") == 302
    assert ask(port, "/topics", Cookie="sso=alice") == 200
    assert ask(port, "/topics", Cookie="sso=nobody", X_Forwarded_User="alice") == 401
    assert ask(port, "/topics", Cookie="sso=alice", Origin="https://other.example.com") == 403
    assert ask(port, "/health") == 200
    tables = "/api/v1/tables/topics"
    assert ask(port, tables, Authorization=f"Bearer {token}") == 200
    assert ask(port, tables, Cookie="sso=alice") == 401
