"""What an operator does wrong gets one clear line and an exit status: 2 where the configuration is
wrong, 1 where the machine says no. Nothing else is touched."""

import json
import random
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from broker.server.main import EXIT_FAILED, EXIT_WRONG_USE
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports


def run_node(tmp_path: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Start a node of its own that is expected to give up."""
    client, controller = free_ports(2)
    properties = {
        "node.id": "7",
        "cluster.id": "abc",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"7@127.0.0.1:{controller}",
        "log.dirs": str(tmp_path / "data"),
    }
    properties |= {name.replace("_", "."): value for name, value in changes.items()}
    config = tmp_path / "node.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return subprocess.run(
        (sys.executable, "-m", "broker.server.main", "--config", str(config)),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def assert_one_clear_line(
    done: subprocess.CompletedProcess[str], *words: str, status: int = EXIT_WRONG_USE
) -> None:
    assert done.returncode == status, done.stderr
    errors = [line for line in done.stderr.splitlines() if " ERROR " in line]
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "ready" not in done.stdout
    for word in words:
        assert word in errors[0]


def test_a_port_in_use(tmp_path: Path, our_cluster: LocalCluster) -> None:
    port = our_cluster.ports[101]
    controller = free_ports(1)[0]
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
    voters = f"7@127.0.0.1:{controller}"
    done = run_node(tmp_path, listeners=listeners, controller_quorum_voters=voters)
    assert_one_clear_line(
        done, f"127.0.0.1:{port}", "port is in use", "choose another port", status=EXIT_FAILED
    )
    assert our_cluster.metadata(101).brokers


def test_a_missing_property(tmp_path: Path) -> None:
    assert_one_clear_line(run_node(tmp_path, cluster_id=""), "cluster.id is missing", "add a line")


def test_a_bad_value(tmp_path: Path) -> None:
    done = run_node(tmp_path, num_partitions="many")
    assert_one_clear_line(done, "num.partitions=many", "not a whole number")


def test_a_bad_log_value(tmp_path: Path) -> None:
    assert_one_clear_line(run_node(tmp_path, log_segment_bytes="big"), "log.segment.bytes=big")


def test_voters_without_this_node(tmp_path: Path) -> None:
    done = run_node(tmp_path, controller_quorum_voters="8@127.0.0.1:19999")
    assert_one_clear_line(done, "lacks node.id 7", "add it", "process.roles=broker")


def test_a_voter_that_is_said_to_be_none(tmp_path: Path) -> None:
    voters = f"7@127.0.0.1:{free_ports(1)[0]}"
    done = run_node(tmp_path, controller_quorum_voters=voters, process_roles="broker")
    assert_one_clear_line(done, "names node.id 7", "process.roles=broker,controller")


def test_an_unwritable_data_directory(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    done = run_node(tmp_path, log_dirs=str(blocker / "data"))
    assert_one_clear_line(done, str(blocker / "data"), status=EXIT_FAILED)


def test_a_data_directory_of_another_cluster(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=7\n")
    assert_one_clear_line(run_node(tmp_path), str(directory), "other", status=EXIT_FAILED)


def test_a_data_directory_in_use(tmp_path: Path, our_cluster: LocalCluster) -> None:
    directory = our_cluster.log_dir(101)
    done = run_node(tmp_path, log_dirs=str(directory))
    assert_one_clear_line(done, str(directory), status=EXIT_FAILED)
    assert our_cluster.metadata(101).brokers


@pytest.mark.thorough
def test_a_damaged_vote(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, brokers=1) as cluster:
        cluster.kill(101, signal.SIGTERM)
        vote = cluster.log_dir(101) / "__cluster_metadata-0" / "quorum-state"
        assert json.loads(vote.read_text())["leaderEpoch"] == 1
        vote.write_text("{")
        cluster.start_node(101)
        process = cluster.processes.pop(101)
        assert process.wait(WAIT_S) == 1
        assert "is not a quorum state" in cluster.story()
        assert "Traceback" not in cluster.story()


@pytest.mark.parametrize(
    "nonsense",
    [
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", -5),
        struct.pack(">i", 1000) + b"cut off",
        struct.pack(">ihhih", 10, 0, 99, 1, -1),
        random.Random(200).randbytes(200),
        b"GET / HTTP/1.0\r\n\r\n",
    ],
    ids=["huge", "negative", "cut-off", "unknown-api", "noise", "http"],
)
def test_nonsense_on_either_port_ends_only_its_connection(
    our_cluster: LocalCluster, nonsense: bytes
) -> None:
    for port in (our_cluster.ports[101], our_cluster.controller_ports[101]):
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as sock:
            sock.sendall(nonsense)
            sock.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                assert sock.recv(100) == b""
    assert our_cluster.metadata(101).brokers
    assert "Traceback" not in our_cluster.story(1000)
