"""TLS of the page: by certificate files, which may be replaced while it runs."""

import http.client
import socket
import ssl
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest
from websockets.sync.client import connect
from websockets.typing import Origin

from partiscope.health import main as health
from partiscope.installation import Installation
from tests.support.attacker import SECRET, Attacker, page_with_users
from tests.support.cases import case
from tests.support.certificates import make_certificate
from tests.support.page_server import NOWHERE
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import wait_until

pytestmark = pytest.mark.thorough

VIEWS: Final = "/rows/topics"


def install(folder: Path, made: Path, name: str, *parts: str) -> None:
    """Replaces the files of a page by those of a certificate, as renewers do."""
    for part in parts:
        fresh = folder / "fresh"
        fresh.write_bytes((made / f"{name}.{part}").read_bytes())
        fresh.replace(folder / f"page.{part}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("one", "two", "three"):
        make_certificate(folder, name)
    return folder


@pytest.fixture
def page(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attacker]:
    install(tmp_path, made, "one", "pem", "key")
    monkeypatch.setenv("PARTISCOPE_DASHBOARD__CERTIFICATE", str(tmp_path / "page.pem"))
    monkeypatch.setenv("PARTISCOPE_DASHBOARD__KEY", str(tmp_path / "page.key"))
    with page_with_users(tmp_path) as attacker:
        yield attacker


def trusting(*certificates: Path) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for path in certificates:
        context.load_verify_locations(path)
    return context


def name_at(page: Attacker, made: Path) -> str:
    """Of the certificate that a new connection gets."""
    context = trusting(*made.glob("*.pem"))
    port = page.server.port
    with (
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as secure,
    ):
        found = secure.getpeercert()
    assert found is not None
    return str(dict(pair[0] for pair in found["subject"])["commonName"])  # type: ignore[misc]


def log_in(page: Attacker, connection: http.client.HTTPSConnection) -> str:
    form = urlencode({"name": "alice", "password": SECRET, "next": "/"})
    headers = {
        "Origin": f"https://{page.host}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    connection.request("POST", "/login", form, headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 303
    return str(answer.getheader("set-cookie"))


def secured(page: Attacker, made: Path, name: str = "one") -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(
        "127.0.0.1", page.server.port, context=trusting(made / f"{name}.pem"), timeout=WAIT_S
    )


def test_a_login_and_its_views_come_by_tls_alone(page: Attacker, made: Path) -> None:
    assert f"ready https://{page.host}" in page.server.log.read_text()
    with closing(secured(page, made)) as connection:
        cookie = log_in(page, connection)
        assert "Secure" in cookie.split("; ")
        connection.request("GET", VIEWS, headers={"Cookie": cookie.partition(";")[0]})
        assert b"topic-0" in connection.getresponse().read()
    with connect(
        f"wss://{page.host}/_dash-ws-callback", origin=Origin(f"https://{page.host}"),
        additional_headers={"Cookie": cookie.partition(";")[0]}, ssl=trusting(made / "one.pem"),
    ) as socket_:  # fmt: skip
        assert socket_.protocol.state.name == "OPEN"
    with pytest.raises((http.client.HTTPException, OSError)):
        page.ask("/health")  # nothing is told in plain
    old = trusting(made / "one.pem")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", page.server.port), timeout=WAIT_S) as raw,
        pytest.raises((ssl.SSLError, OSError)),
    ):
        old.wrap_socket(raw, server_hostname="127.0.0.1")


def test_a_renewed_certificate_is_used_and_open_connections_stay(
    page: Attacker, made: Path, tmp_path: Path
) -> None:
    with closing(secured(page, made)) as connection:
        cookie = log_in(page, connection).partition(";")[0]
        assert name_at(page, made) == "one"
        install(tmp_path, made, "two", "pem", "key")
        wait_until(lambda: name_at(page, made) == "two", "new connections get the new one")
        connection.request("GET", VIEWS, headers={"Cookie": cookie})
        assert b"topic-0" in connection.getresponse().read()  # neither login nor connection ends


def test_files_that_are_half_replaced_change_nothing_until_they_fit(
    page: Attacker, made: Path, tmp_path: Path
) -> None:
    assert name_at(page, made) == "one"
    install(tmp_path, made, "three", "pem")  # the key is still that of one

    def is_told(words: str) -> bool:
        assert name_at(page, made) == "one"
        return words in page.server.log.read_text()

    wait_until(lambda: is_told("of another certificate"), "the log tells it")
    (tmp_path / "page.key").unlink()
    wait_until(lambda: is_told("no such file"), "the log tells that too")
    install(tmp_path, made, "three", "key")
    wait_until(lambda: name_at(page, made) == "three", "the pair is used once it is whole")


def test_health_is_asked_by_tls_as_well(page: Attacker) -> None:
    assert health("page", page.host) == 0
    (nobody,) = free_ports(1)
    assert health("page", f"127.0.0.1:{nobody}") == 1


def test_files_that_cannot_be_used_refuse_the_start(made: Path, tmp_path: Path) -> None:
    plain, sealed = tmp_path / "text.pem", tmp_path / "sealed.key"
    plain.write_text("no certificate")
    words = ("openssl", "pkey", "-in", str(made / "one.key"), "-aes256", "-passout", "pass:x")
    subprocess.run([*words, "-out", str(sealed)], check=True, capture_output=True)
    config = tmp_path / "partiscope.toml"
    Installation(bus=NOWHERE).save(tmp_path / "data")
    (port,) = free_ports(1)
    for certificate, key, told in (
        (made / "none.pem", made / "one.key", "no such file"),
        (made / "one.pem", made / "two.key", "the key is of another certificate"),
        (plain, plain, "they are no PEM pair"),
        (made / "one.pem", sealed, "is encrypted"),
        (made / "one.pem", None, "they are no PEM pair"),
        (None, made / "one.key", "without dashboard.certificate"),
    ):
        with case((certificate, key)):
            named = {"certificate": certificate, "key": key}
            lines = [f'{name} = "{path}"' for name, path in named.items() if path is not None]
            config.write_text("\n".join(["[dashboard]", *lines]))
            done = subprocess.run(
                (sys.executable, "-m", "partiscope", "dashboard", "--port", str(port),
                 "--store", str(tmp_path / "store")),
                env={"PATH": "/usr/bin:/bin", "PARTISCOPE_CONFIG": str(config),
                     "PARTISCOPE_DATA": str(tmp_path / "data"), "PYTHONPATH": ":".join(sys.path)},
                capture_output=True, text=True, timeout=WAIT_S * 4, check=False,
            )  # fmt: skip
            assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
            assert told in done.stderr
