"""The page behind nginx, as the documents configure it: TLS, a login, and no other web site."""

import base64
import getpass
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Final

import pytest

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


def documented(folder: Path, *, page: int, port: int) -> str:
    """The configuration of docs/operate/security.md, with ports and files of this test."""
    text = (ROOT / "docs/operate/security.md").read_text()
    (found,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
    cert, key = make_certificate(folder, "partiscope")
    hashed = subprocess.run(
        ("openssl", "passwd", "-apr1", "secret"), check=True, capture_output=True, text=True
    ).stdout
    (folder / "partiscope.htpasswd").write_text(f"op:{hashed}")
    found = found.replace("127.0.0.1:8050", f"127.0.0.1:{page}").replace(
        "listen 443", f"listen 127.0.0.1:{port}"
    )
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
    with PageServer(store.folder) as page:
        config = folder / "nginx.conf"
        config.write_text(documented(folder, page=page.port, port=port))
        assert NGINX is not None
        nginx = subprocess.Popen((NGINX, "-c", str(config), "-p", str(folder)))
        try:
            wait_until(lambda: _listens(port), "nginx listens")
            yield port
        finally:
            nginx.terminate()
            nginx.wait(WAIT_S)


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
