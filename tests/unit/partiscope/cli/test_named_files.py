"""Every place where an operator names a file, with each kind of file that cannot be read: status 2,
which file, why; nothing falls back to a default, and no cluster is asked anything."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit
from partiscope.installation import Installation
from planner.topology import topology_document
from tests.support.certificates import make_certificate
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S
from tests.support.unprivileged import as_ordinary_user
from tests.unit.planner.clusters import cluster

pytestmark = pytest.mark.timeout(WAIT_S)

PLAN: Final = {"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1]}]}
TLS: Final = 'security_protocol = "SSL"\n'
REGISTRY: Final = '[schema_registry]\nurl = "https://127.0.0.1:1"\n'
PEM: Final = "PEM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """``{file}`` stands for what is named, ``{here}`` for the folder, ``{cluster}`` for an
    address."""

    words: str = "topics list"
    settings: str = ""
    """Content of ``partiscope.toml``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    file: str = "named"
    not_utf_8: str = "UTF-8"
    """The word for bytes that are no text."""
    allows: tuple[str, ...] = ()
    """Kinds that are fine here."""


PLACES: Final = {
    "PARTISCOPE_CONFIG": Place(environment={"PARTISCOPE_CONFIG": "{file}"}),
    "the settings file of the folder": Place(file="partiscope.toml", allows=("missing",)),
    "connection.config_file": Place(settings='[connection]\nconfig_file = "{file}"'),
    "config_file of a named cluster": Place(
        settings='[clusters.prod]\nbootstrap = "{cluster}"\nproduction = true\n'
        '[clusters.prod.connection]\nconfig_file = "{file}"'
    ),
    "config_file in the environment": Place(
        environment={"PARTISCOPE_CONNECTION__CONFIG_FILE": "{file}"}
    ),
    "--command-config": Place(
        words="collect --bootstrap {cluster} --bus {cluster} --command-config {file}"
    ),
    "--command-config of `up`": Place(words="up --bootstrap {cluster} --command-config {file}"),
    "the --command-config that `up` had": Place(words="topics list --data {here}/recorded"),
    "ssl.truststore.location": Place(
        words="collect --bootstrap {cluster} --bus {cluster} --command-config {here}/client",
        not_utf_8=PEM,
    ),
    "ssl_cafile": Place(
        settings=f'[connection]\n{TLS}ssl_cafile = "{{file}}"',
        not_utf_8=PEM,
    ),
    "ssl_cafile without TLS": Place(
        settings='[connection]\nssl_cafile = "{file}"',
        allows=("not UTF-8",),
    ),
    "ssl_certfile": Place(
        settings=f'[connection]\n{TLS}ssl_certfile = "{{file}}"',
        not_utf_8=PEM,
    ),
    "ssl_keyfile": Place(
        settings=f'[connection]\n{TLS}ssl_certfile = "{{here}}/ours.pem"\nssl_keyfile = "{{file}}"',
        not_utf_8=PEM,
    ),
    "SSL_CERT_FILE": Place(
        environment={"SSL_CERT_FILE": "{file}"},
        settings=f"[connection]\n{TLS}",
        allows=("not UTF-8",),
    ),
    "password_file": Place(
        settings='[connection]\nsecurity_protocol = "SASL_PLAINTEXT"\nusername = "me"\n'
        'password = "other"\npassword_file = "{file}"'
    ),
    "oauth_token_file": Place(
        settings='[connection]\nsecurity_protocol = "SASL_PLAINTEXT"\n'
        'sasl_mechanism = "OAUTHBEARER"\noauth_token_file = "{file}"'
    ),
    "schema_registry.password_file": Place(
        settings=f'{REGISTRY}password = "other"\npassword_file = "{{file}}"'
    ),
    "schema_registry.token_file": Place(
        settings=f'{REGISTRY}token = "other"\ntoken_file = "{{file}}"'
    ),
    "schema_registry.ssl_cafile": Place(
        settings=f'{REGISTRY}ssl_cafile = "{{file}}"', not_utf_8=PEM
    ),
    "schema_registry.ssl_certfile": Place(
        settings=f'{REGISTRY}ssl_certfile = "{{file}}"',
        not_utf_8=PEM,
    ),
    "schema_registry.ssl_keyfile": Place(
        settings=f'{REGISTRY}ssl_certfile = "{{here}}/ours.pem"\nssl_keyfile = "{{file}}"',
        not_utf_8=PEM,
    ),
    "registry of a flag": Place(
        words="tail t --exit-at-end --schema-registry https://127.0.0.1:1",
        settings='[schema_registry]\npassword_file = "{file}"',
    ),
    "broker --config": Place(words="broker --config {file}"),
    "check PLAN": Place(words="check {file}"),
    "check --topology": Place(words="check {here}/plan.json --topology {file}"),
    "reassign PLAN": Place(words="reassign {file} --yes"),
    "the placement before, beside PLAN": Place(
        words="reassign {here}/plan.json --yes",
        file="plan.before.json",
        allows=("missing",),
    ),
    "plan --topology": Place(words="plan --topology {file}"),
    "plan --edit": Place(words="plan --topology {here}/topology.json --edit {file}"),
    "plan --edit of a cluster": Place(words="plan --edit {file}"),
    "produce --file": Place(words="produce t --file {file}", allows=("not UTF-8", "pipe")),
    "produce --json-lines --file": Place(
        words="produce t --json-lines --file {file}", allows=("not UTF-8", "pipe")
    ),
    "produce --keys-from": Place(
        words="produce t --value v --keys-from {file}", allows=("not UTF-8",)
    ),
}


def _denied(path: Path) -> None:
    path.write_text("")
    path.chmod(0)


KINDS: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "missing": (lambda path: None, "no such file"),
    "directory": (Path.mkdir, "directory"),
    "denied": (_denied, "permission"),
    "not UTF-8": (lambda path: path.write_bytes(b"\xff\xfe\x00{"), "UTF-8"),
    "dangling link": (lambda path: path.symlink_to("nowhere-else"), "nowhere-else"),
    "link to itself": (lambda path: path.symlink_to(path), "symbolic links"),
    "pipe": (os.mkfifo, "pipe"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "device"),
}
CASES: Final = [
    (name, kind) for name, at in PLACES.items() for kind in KINDS if kind not in at.allows
]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("named"), "ours")[0]


@pytest.fixture
def usual_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: Path
) -> Iterator[socket.socket]:
    """The cluster that commands go to unless they are told otherwise: nobody may knock there."""
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = _address(listening)
        for name in ("BOOTSTRAP", "BUS"):
            monkeypatch.setenv(f"PARTISCOPE_{name}", address)
        monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "data"))
        monkeypatch.delenv("PARTISCOPE_CONFIG", raising=False)
        (tmp_path / "ours.pem").write_bytes(certificate.read_bytes())
        (tmp_path / "plan.json").write_text(json.dumps(PLAN))
        before = cluster({1: None, 2: None}, [(1, 2)])
        (tmp_path / "topology.json").write_text(json.dumps(topology_document(before)))
        yield listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()
    return f"{host}:{port}"


def _has_caller(listening: socket.socket) -> bool:
    listening.setblocking(False)
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _typed(place: Place, named: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Name the file in this place; the words of a command that needs it."""

    def filled(text: str) -> str:
        for name, value in {"file": named, "here": Path.cwd(), "cluster": address}.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    if place.settings:
        Path("partiscope.toml").write_text(filled(place.settings))
    for name, value in place.environment.items():
        monkeypatch.setenv(name, filled(value))
    Path("client").write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={named}\n"
    )
    Installation(bus=address, config_file=str(named)).save(Path("recorded"))
    return filled(place.words).split()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_named_file_that_cannot_be_read_is_an_error(
    name: str,
    kind: str,
    usual_cluster: socket.socket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    place, (make, why) = PLACES[name], KINDS[kind]
    named = tmp_path / place.file
    words = _typed(place, named, _address(usual_cluster), monkeypatch)
    make(named)
    with as_ordinary_user() if kind == "denied" else nullcontext():
        status = run(words)
    told = capsys.readouterr()
    said = told.err + caplog.text
    assert status == Exit.WRONG_USE, said
    assert place.file in said
    assert (place.not_utf_8 if kind == "not UTF-8" else why) in said
    assert not _has_caller(usual_cluster)
    assert told.out == ""


def test_the_usual_cluster_is_asked_where_nothing_is_wrong(
    usual_cluster: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the tests above could not fail."""
    for name in ("REQUEST", "CONNECT"):
        monkeypatch.setenv(f"PARTISCOPE_CONNECTION__{name}_TIMEOUT_MS", "100")
    assert run(["topics", "list"]) == Exit.UNREACHABLE
    assert _has_caller(usual_cluster)


@pytest.mark.parametrize("module", ["partiscope topics list", "broker.server.main --config ."])
def test_a_directory_in_the_place_of_a_file_ends_the_process_with_2(
    module: str, usual_cluster: socket.socket
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *module.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PARTISCOPE_CONFIG": "."},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (Exit.WRONG_USE, ""), done.stderr
    assert "'.': it is a directory" in done.stderr
    assert not _has_caller(usual_cluster)


def test_an_empty_name_is_no_name_of_a_file(
    usual_cluster: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("PARTISCOPE_CONNECTION__CONFIG_FILE", "PARTISCOPE_CONFIG"):
        monkeypatch.setenv(name, "")
        assert run(["topics", "list"]) == Exit.WRONG_USE
        assert "cannot read" in capsys.readouterr().err
    assert not _has_caller(usual_cluster)


@pytest.mark.parametrize("name", [name for name in PLACES if "password" in name or "token" in name])
@pytest.mark.parametrize("content", [b"", b"\nsecond line"])
def test_a_file_without_its_secret_is_no_other_secret(
    name: str,
    content: bytes,
    usual_cluster: socket.socket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = tmp_path / "named"
    named.write_bytes(content)
    words = _typed(PLACES[name], named, _address(usual_cluster), monkeypatch)
    assert run(words) == Exit.WRONG_USE
    told = capsys.readouterr().err
    assert str(named) in told
    assert "first line is empty" in told
    assert not _has_caller(usual_cluster)


def test_a_key_that_cannot_be_used_is_refused_and_nobody_is_asked_for_its_password(
    usual_cluster: socket.socket, certificate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, both = make_certificate(certificate.parent, "locked")
    lock = ("openssl", "pkey", "-aes256", "-passout", "pass:secret", "-in", both, "-out", "key.pem")
    subprocess.run(lock, check=True, capture_output=True)
    settings = Path("partiscope.toml")
    settings.write_text(f'[connection]\n{TLS}ssl_keyfile = "key.pem"\n')
    assert run(["topics", "list"]) == Exit.WRONG_USE
    assert "'key.pem' needs ssl_certfile" in capsys.readouterr().err
    (settings.parent / "locked.pem").write_bytes((certificate.parent / "locked.pem").read_bytes())
    with settings.open("a") as more:
        more.write('ssl_certfile = "locked.pem"\n')
    assert run(["topics", "list"]) == Exit.WRONG_USE
    assert "set ssl_key_password" in capsys.readouterr().err
    assert not _has_caller(usual_cluster)


def test_a_pipe_will_do_where_a_file_is_read_once(
    usual_cluster: socket.socket, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `check <(other-tool)` has it; and the null device is an empty file."""
    reading, writing = os.pipe()
    os.write(writing, json.dumps(PLAN).encode())
    os.close(writing)
    status = run(["check", f"/dev/fd/{reading}", "--topology", "topology.json"])
    os.close(reading)
    assert status in {Exit.DONE, Exit.REFUSED}, capsys.readouterr().err
    assert run(["check", "/dev/null", "--topology", "topology.json"]) == Exit.WRONG_USE
    assert "cannot read" not in capsys.readouterr().err
