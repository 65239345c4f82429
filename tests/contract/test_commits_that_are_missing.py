"""What members own without a commit, commits beyond the end, groups that nobody is in any more:
as store, command line and export tell them, on bundled brokers and on a watched Kafka."""

import csv
import io
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.commits import commit
from tests.support.installation import Installation
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

MISSING = re.compile(r"2 partitions of 4 without a commit.* 2,000 records")
pytestmark = [
    pytest.mark.kafka_oracle,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.timeout(600),
]
RECORDS = 1_000
TOPICS = {"owned": 3, "fresh": 1, "short": 1}
AGAIN_S = 25.0
"""For so long a member commits the same offset; then it leaves."""


@pytest.fixture(params=["bundled", "kafka"])
def watching(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path: Path
) -> Iterator[tuple[Installation, str]]:
    """An installation, and the bootstrap of the cluster that it shows."""
    assert kafka_libs.exists()
    if request.param == "bundled":
        with Installation(tmp_path / "up", flags=("--no-demo",)) as installation:
            installation.wait_ready()
            yield installation, installation.bootstrap
        return
    with KafkaCluster(tmp_path / "kafka") as cluster:
        flags = ("--bootstrap", cluster.bootstrap)
        with Installation(tmp_path / "up", flags=flags) as installation:
            installation.wait_ready()
            yield installation, cluster.bootstrap


def test_what_is_missing_is_told_and_nothing_is_green(
    watching: tuple[Installation, str], request: pytest.FixtureRequest
) -> None:
    installation, bootstrap = watching
    is_kafka = "kafka" in request.node.callspec.id
    admin = _fill(bootstrap)
    protocols = {"classic-one": "classic"} | ({"new-one": "consumer"} if is_kafka else {})
    commit(admin, "beyond", {("short", 0): 500})
    with _members(bootstrap, protocols):
        found: dict[str, Any] = {}

        def are_told() -> bool:
            status, _ = installation.status()
            found.update({row["group"]: row for row in status["groups"]})
            found["findings"] = {it["kind"]: it for it in status["findings"]}
            is_judged = found.get("beyond", {}).get("status") == "BEYOND"
            reasons = [
                found.get(name, {}).get("status_unknown_because") or "" for name in protocols
            ]
            return is_judged and all(MISSING.match(it) for it in reasons)

        wait_until(are_told, "both kinds are told", timeout_s=120, story=lambda: str(found))
        for name in protocols:
            assert (found[name]["status"], found[name]["lag"]) == (None, 0)
            _are_described(_described(bootstrap, name)["partitions"])
        assert found["latest"]["status_unknown_because"].startswith("3 partitions of 3 without")
        assert found["latest"]["lag"] is None
        finding = found["findings"]["group-BEYOND"]
        assert "offset 500" in finding["reason"]
        assert "ends at 100" in finding["reason"]
        (row,) = _described(bootstrap, "beyond")["partitions"]
        assert (row["lag"], row["note"].split(" the end")[0]) == (None, "committed 400 beyond")
        exported = {row["group"]: row for row in _exported(installation)}
        assert exported["beyond"]["status"] == "BEYOND"
        assert exported["classic-one"]["status"] == ""
        time.sleep(AGAIN_S)
    commit(admin, "beyond", {("short", 0): 100})

    def statuses() -> dict[str, Any]:
        return {row["group"]: row["status"] for row in installation.status()[0]["groups"]}

    wanted = {"again": "STOP", "beyond": "OK", "classic-one": "OK"}
    wait_until(
        lambda: wanted.items() <= statuses().items(),
        "who has left is told to have stopped, and what was reset is well",
        timeout_s=120,
        story=lambda: str(statuses()),
    )


def _are_described(rows: list[dict[str, Any]]) -> None:
    told = [(r["topic"], r["committed"], r["lag"], r["to_read"], r["note"]) for r in rows]
    assert told == [
        *[("owned", None, None, RECORDS, "no commit")] * 2,
        ("fresh", None, None, 0, "no commit"),
        ("owned", RECORDS, 0, 0, None),
    ]


def _fill(bootstrap: str) -> AdminClient:
    admin: AdminClient = ready_admin(**{"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(name, count, 3) for name, count in TOPICS.items()])
    for future in made.values():
        future.result(WAIT_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(3):
        for _ in range(RECORDS):
            producer.produce("owned", b"x", partition=number)
    for _ in range(100):
        producer.produce("short", b"x", partition=0)
    assert producer.flush(WAIT_S) == 0
    return admin


@contextmanager
def _members(bootstrap: str, protocols: dict[str, str]) -> Iterator[None]:
    """Members that own everything and commit owned-0; one that begins at the end and commits
    nothing; one that commits the same offset again and again."""
    stop = threading.Event()

    def read(group: str, topics: list[str], offset: int | None, **config: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": group}
        consumer = Consumer({**settings, "enable.auto.commit": False, **config})
        consumer.subscribe(topics)
        while not stop.is_set():
            consumer.poll(0.5)
            if offset is not None and consumer.assignment():
                consumer.commit(offsets=[TopicPartition("owned", 0, offset)], asynchronous=False)
                offset = offset if group == "again" else None
        consumer.close()

    works = [
        *(
            (group, ["owned", "fresh"], RECORDS, {"group.protocol": protocol})
            for group, protocol in protocols.items()
        ),
        ("latest", ["owned"], None, {"auto.offset.reset": "latest"}),
        ("again", ["owned"], 100, {}),
    ]
    threads = [
        threading.Thread(target=lambda it=it: read(*it[:3], **it[3]), daemon=True) for it in works
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(WAIT_S)


def _described(bootstrap: str, group: str) -> dict[str, Any]:
    words = ("groups", "describe", group, "--bootstrap", bootstrap, "--json")
    done = subprocess.run(
        [sys.executable, "-m", "partiscope", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _exported(installation: Installation) -> list[dict[str, str]]:
    with urllib.request.urlopen(f"{installation.page}/export/groups.csv", timeout=WAIT_S) as answer:
        return list(csv.DictReader(io.StringIO(answer.read().decode())))
