"""An installation on ``::1``: brokers, Spark, executor, page and commands find each other."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.installation import Installation
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(420)]

Typed = Callable[..., str]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError as error:
            pytest.skip(f"this machine has no ::1: {error}")
    with Installation(tmp_path_factory.mktemp("six"), host="::1") as installation:
        installation.wait_ready()
        yield installation


@pytest.fixture
def typed(running: Installation) -> Typed:
    """Runs a command; what it writes."""

    def run(*words: str, given: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "partiscope", *words, "--data", str(running.data)],
            input=given, capture_output=True, text=True, timeout=patience_s(60), check=False,
        )  # fmt: skip
        assert done.returncode in (0, 5), done.stderr
        return done.stdout

    return run


def test_figures_records_and_moves_come_through(
    running: Installation, typed: Typed, tmp_path: Path
) -> None:
    assert running.bootstrap.startswith("[::1]:")
    typed("topics", "create", "six", "--partitions", "1", "--replication-factor", "2")
    typed("produce", "six", given="a\nb\n")
    told = typed("tail", "six", "--offset", "earliest", "--exit-at-end", "--json")
    assert [json.loads(line)["value"] for line in told.splitlines()] == ["a", "b"]

    def has_figures() -> bool:
        rows = json.loads(typed("topics", "list", "--filter", "topic:six", "--json"))["topics"]
        return bool(rows) and rows[0]["size_bytes"] is not None

    wait_until(has_figures, "Spark tells of the topic", timeout_s=patience_s(60))
    document, _ = running.status()
    assert [broker["status"] for broker in document["brokers"]] == ["alive"] * 3
    with urlopen(f"{running.page}/overview", timeout=WAIT_S) as answer:
        assert answer.status == 200
    plan = tmp_path / "plan.json"
    replicas = [101, 102, 103]
    move = {"topic": "six", "partition": 0, "replicas": replicas}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    typed("reassign", str(plan), "--yes")
    found = json.loads(typed("topics", "describe", "six", "--json"))
    assert found["partitions"][0]["replicas"] == replicas
