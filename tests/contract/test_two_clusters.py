"""One installation watches Kafka 4.1 and Kafka 3.9 at once, by their names in the settings."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import expect

from tests.contract.group_clients import produce
from tests.support.browser import chromium, open_page
from tests.support.commits import commit
from tests.support.installation import Installation
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [
    pytest.mark.kafka_oracle,
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.timeout(580),
]

OLD, OLD_ID = "3.9.0", "b2xkZXItdGVzdC1jbHVzdA"
TOPICS = {"new": {"orders": 3, "clicks": 2}, "old": {"orders": 4}}
RECORDS = {"new": 30, "old": 80}


@pytest.fixture
def clusters(kafka_libs: Path, tmp_path: Path) -> Iterator[dict[str, KafkaCluster]]:
    """One node each; a group that has read nothing of ``orders``."""
    assert kafka_libs.exists()
    with (
        KafkaCluster(tmp_path / "new", brokers=1) as new,
        KafkaCluster(
            tmp_path / "old", brokers=1, first_id=201, version=OLD, cluster_id=OLD_ID
        ) as old,
    ):
        started = {"new": new, "old": old}
        for name, cluster in started.items():
            admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
            topics = [NewTopic(topic, count, 1) for topic, count in TOPICS[name].items()]
            for future in admin.create_topics(topics).values():
                future.result(WAIT_S)
            produce(cluster.bootstrap, "orders", RECORDS[name])
            count = TOPICS[name]["orders"]
            commit(admin, f"billing-{name}", {("orders", number): 0 for number in range(count)})
        yield started


def _told(installation: Installation, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "partiscope", *words, "--json", "--data", str(installation.data)],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 5), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_two_clusters_stand_side_by_side(
    clusters: dict[str, KafkaCluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "partiscope.toml"
    settings.write_text(
        f'[clusters.new]\nbootstrap = "{clusters["new"].bootstrap}"\nproduction = true\n'
        f'[clusters.old]\nbootstrap = "{clusters["old"].bootstrap}"\nread_only = true\n'
    )
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(settings))
    flags = ("--cluster", "new", "--cluster", "old")
    errors: list[str] = []
    with Installation(tmp_path / "up", flags=flags) as installation, chromium() as browser:
        installation.wait_ready()
        rows: dict[str, Any] = {}

        def are_known() -> bool:
            rows.update({it["cluster"]: it for it in _told(installation, "clusters")["clusters"]})
            return {name: row["lag"] for name, row in rows.items()} == RECORDS

        wait_until(are_known, "both are read", story=lambda: str(rows))
        assert {name: row["brokers"] for name, row in rows.items()} == {
            "new": "1/1 brokers",
            "old": "1/1 brokers",
        }
        assert {name: row["flags"] for name, row in rows.items()} == {
            "new": "PRODUCTION",
            "old": "read-only",
        }
        for name, topics in TOPICS.items():
            status = _told(installation, "status", "--cluster", name)
            assert {row["group"]: row["lag"] for row in status["groups"]} == {
                f"billing-{name}": RECORDS[name]
            }
            address = f"{installation.page}/export/partitions.csv?cluster={name}"
            with urllib.request.urlopen(address, timeout=WAIT_S) as answer:
                found = list(csv.DictReader(io.StringIO(answer.read().decode())))
            held = [row["topic"] for row in found if not row["topic"].startswith("__")]
            assert {topic: held.count(topic) for topic in held} == topics

        page = open_page(browser, f"{installation.page}/clusters?cluster=new", errors)
        expect(page.locator("#all-clusters tbody tr")).to_have_count(2)
        expect(page.locator('[data-key="old"]')).to_contain_text("80")

        # One is away: its row says so, the other's goes on.
        for process in clusters["old"].processes.values():
            process.send_signal(signal.SIGSTOP)
        wait_until(
            lambda: are_known() and rows["old"]["critical"] > 0 and rows["new"]["critical"] == 0,
            "one is away",
            story=lambda: str(rows),
        )
        assert rows["old"]["lag"] == RECORDS["old"], "the last figure stands, with its age"
        expect(page.locator('[data-key="old"]')).to_contain_text("✖")
        for process in clusters["old"].processes.values():
            process.send_signal(signal.SIGCONT)
        wait_until(
            lambda: are_known() and rows["old"]["critical"] == 0,
            "it is back by itself",
            story=lambda: str(rows),
        )
        page.get_by_role("link", name="old", exact=True).click()
        page.wait_for_url("**/overview?cluster=old")
        expect(page.get_by_text("read-only", exact=True)).to_be_visible()
    assert errors == []
