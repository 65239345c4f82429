"""``up --bootstrap`` while a node dies, and while the whole cluster is away: it is said, no figure
is wrong, and all is well again by itself."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.cimpl import NewTopic

from tests.contract.group_clients import members, produce
from tests.support.installation import Installation
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(590)]

TOPIC, GROUP = "orders", "billing"
LINGER = {"not-preferred", "skew-leaders", "skew-replicas", "skew-bytes", "job-slow", "job-behind"}
"""What Kafka itself mends within five minutes, and how this machine fares meanwhile."""
PARTITIONS = 6
AWAY_S = 60.0
BACK_S = 150.0


@pytest.fixture
def cluster(kafka_libs: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    assert kafka_libs.exists()
    with KafkaCluster(tmp_path / "kafka") as started:
        admin = ready_admin(**{"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(WAIT_S)
        yield started


class Eyes:
    """What ``status --json`` has told, all of it judged."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.last: dict[str, Any] = {}
        self.exit = 0

    def look(self) -> dict[str, Any]:
        """Now; a negative lag is never told."""
        self.last, self.exit = self._installation.status()
        lags = [row["lag"] for row in self.last["groups"] if row["lag"] is not None]
        assert all(lag >= 0 for lag in lags), lags
        return self.last

    def wait(self, is_so: Any, what: str) -> None:
        """Until what is told is so."""
        wait_until(
            lambda: is_so(self.look()),
            what,
            timeout_s=BACK_S,
            story=lambda: json.dumps(self.last, indent=1)[-6_000:],
        )


def _kinds(status: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in status["findings"]}


def _lag(status: dict[str, Any]) -> int | None:
    found = {row["group"]: row["lag"] for row in status["groups"]}
    lag: int | None = found.get(GROUP)
    return lag


def test_what_is_away_is_said_and_comes_back(cluster: KafkaCluster, tmp_path: Path) -> None:
    flags = ("--bootstrap", cluster.bootstrap)
    with (
        Installation(tmp_path / "up", flags=flags) as installation,
        members(1, cluster.bootstrap, GROUP, TOPIC),
    ):
        installation.wait_ready()
        eyes = Eyes(installation)
        produce(cluster.bootstrap, TOPIC, 600)
        eyes.wait(lambda told: _lag(told) == 0, "all is read")
        calm = _kinds(eyes.last) | LINGER

        cluster.kill(102)
        eyes.wait(lambda told: bool(_kinds(told) - calm), "a dead node is said")
        assert "102" in json.dumps(eyes.last["findings"])
        produce(cluster.bootstrap, TOPIC, 600)
        eyes.wait(lambda told: _lag(told) == 0, "figures go on without it")
        cluster.restart(102)
        eyes.wait(lambda told: _kinds(told) <= calm, "it is back, and nothing more is missing")

        for process in cluster.processes.values():
            process.send_signal(signal.SIGSTOP)
        eyes.wait(lambda told: "cluster-away" in _kinds(told), "the cluster is away")
        assert eyes.exit == 5, "that is critical"
        until_s = time.monotonic() + AWAY_S
        while time.monotonic() < until_s:
            told = eyes.look()
            assert _lag(told) == 0, "the last figure stands, with its age"
            time.sleep(5.0)
        assert told["stale"]
        assert told["age_ms"] > AWAY_S * 1000 / 2
        for process in cluster.processes.values():
            process.send_signal(signal.SIGCONT)
        eyes.wait(lambda told: not told["stale"] and _kinds(told) <= calm, "all is well again")
        produce(cluster.bootstrap, TOPIC, 600)
        eyes.wait(lambda told: _lag(told) == 0 and told["partitions"] >= PARTITIONS, "and goes on")
