"""``partiscope up`` where it cannot run: one clear message, the contract's status, no trace."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.operations_rig import variants
from tests.support.installation import processes
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports_in_a_row
from tests.support.settle import wait_until

WRONG_USE, FAILED, INTERRUPTED = 2, 1, 130
JAVA_HOMES = Path("/usr/lib/jvm")


def up(
    data: Path, *flags: str, before: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it on free ports; it is expected to give up."""
    ports = ("--port", str(free_ports_in_a_row(4)), "--dashboard-port", str(free_ports_in_a_row(1)))
    return subprocess.run(
        [*before, sys.executable, "-m", "partiscope", "up", "--data", data, *ports, *flags],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        env={**os.environ, **environment},
    )


def assert_refused(
    done: subprocess.CompletedProcess[str], data: Path, *words: str, status: int = FAILED
) -> None:
    """The words were said, nothing was started, nothing of it is left."""
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith("partiscope: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    assert not [command for _, _, command in processes() if str(data) in command]


@contextmanager
def holder(port: int) -> Iterator[None]:
    """Somebody else listens there."""
    with socket.create_server(("127.0.0.1", port)):
        yield


@pytest.mark.parametrize("offset", variants([2, 10_000]), ids=["third", "first controller"])
def test_a_brokers_port_in_use(tmp_path: Path, offset: int) -> None:
    port = free_ports_in_a_row(3)
    with holder(port + offset):
        done = up(tmp_path, "--port", str(port))
    assert_refused(done, tmp_path, f"cannot listen on 127.0.0.1:{port + offset}", "--port")


@pytest.mark.thorough
def test_the_pages_port_in_use(tmp_path: Path) -> None:
    port = free_ports_in_a_row(1)
    with holder(port):
        done = up(tmp_path, "--dashboard-port", str(port))
    assert_refused(done, tmp_path, f"cannot listen on 127.0.0.1:{port}", "--dashboard-port")


def test_a_data_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    data = tmp_path / "file" / "data"
    assert_refused(up(data), data, f"cannot use data directory {data}", "--data")


def test_a_wrong_setting(tmp_path: Path) -> None:
    done = up(tmp_path, PARTISCOPE_METRICS__TRIGGER_MS="soon")
    assert_refused(done, tmp_path, "metrics.trigger_ms", status=WRONG_USE)


@pytest.mark.thorough
def test_no_connector_for_spark(tmp_path: Path) -> None:
    cache = str(tmp_path / "empty")
    done = up(tmp_path, PARTISCOPE_CACHE=cache, PARTISCOPE_MAVEN="http://127.0.0.1:1")
    assert done.stderr.startswith("Spark's Kafka connector: fetching 11.1 MB from")
    done.stderr = done.stderr.partition("\n")[2]
    assert_refused(done, tmp_path, "127.0.0.1:1", "PARTISCOPE_MAVEN", "partiscope setup")


@pytest.mark.thorough
def test_a_jvm_that_cannot_start_ends_the_rest(tmp_path: Path) -> None:
    """It is started in a group with others, after the brokers."""
    done = up(tmp_path, PARTISCOPE_METRICS__DRIVER_MEMORY="900000g")
    done.stdout = ""  # the brokers were ready by then
    assert_refused(done, tmp_path, "metrics ended before it was ready", "its log: ")


@pytest.mark.thorough
def test_no_java(tmp_path: Path) -> None:
    """With an empty folder in the place of the machine's Javas, seen by this process alone."""
    hide = f'mount -t tmpfs none {JAVA_HOMES} && PATH={tmp_path} && exec "$@"'
    namespace = ("unshare", "--mount", "--", "sh", "-c", hide, "sh")
    if shutil.which("unshare") is None or not JAVA_HOMES.is_dir():
        pytest.skip("needs `unshare` and Java in /usr/lib/jvm")
    if (
        subprocess.run(
            [*namespace, sys.executable, "--version"], capture_output=True, check=False
        ).returncode
        != 0
    ):
        pytest.skip("mounting is not allowed here")
    done = up(tmp_path, before=namespace, JAVA_HOME="")
    assert_refused(done, tmp_path, "no Java was found", "openjdk-17-jre")


@pytest.mark.thorough
def test_a_broker_that_cannot_start_ends_the_rest(tmp_path: Path) -> None:
    port = free_ports_in_a_row(3)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "partiscope", "cluster", "--data", tmp_path),
            *("--port", str(port), "--override", "log.segment.bytes=big"),
        ],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert_refused(done, tmp_path, "before it was ready", "log.segment.bytes=big", "its log: ")


def test_an_override_that_is_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "partiscope", "cluster", "--data", tmp_path, "--override", "x"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert_refused(done, tmp_path, "--override 'x'", "key=value", status=WRONG_USE)


@pytest.mark.parametrize(
    ("number", "status"),
    variants([(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, 0)]),
    ids=["^C", "TERM"],
)
def test_a_cluster_ends_by_a_signal_with_the_contracts_status(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    port = free_ports_in_a_row(1)
    flags = ("--brokers", "1", "--port", str(port), "--data", str(tmp_path))
    said = tmp_path / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "partiscope", "cluster", *flags], stdout=out
        )
    wait_until(
        lambda: f"ready 127.0.0.1:{port}" in said.read_text().splitlines(),
        "the cluster is ready",
        story=said.read_text,
    )
    process.send_signal(number)
    assert process.wait(WAIT_S) == status
    assert not [command for _, _, command in processes() if str(tmp_path) in command]
