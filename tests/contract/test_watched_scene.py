"""``up --bootstrap`` on a busy cluster of real Kafka: every verdict, then every figure."""

import csv
import io
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control.model.fleet import WatchedCluster
from control.model.ids import ClusterId, TopicPartition
from control.views.feed import SnapshotFeed
from spark_metrics.aggregates import AggregatesReader
from tests.support.installation import Installation
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.kafka_scene import TOPICS, VERDICTS, busy
from tests.support.settle import settle, wait_until
from tui.app import PartiscopeApp
from tui.services import Services

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(900)]

VERDICTS_TIMEOUT_S = 480.0
"""One partition that stands still while its group works on others is waited for 300 s."""
FIGURES_TIMEOUT_S = 120.0


@pytest.fixture
def cluster(kafka_libs: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    assert kafka_libs.exists()
    with KafkaCluster(tmp_path / "kafka") as started:
        yield started


async def test_every_group_gets_its_verdict_and_every_figure_is_right(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    flags = ("--bootstrap", cluster.bootstrap)
    installation = Installation(tmp_path / "up", flags=flags)
    with busy(cluster.bootstrap) as scene, installation as watching:
        watching.wait_ready()
        status: dict[str, Any] = {}

        def are_judged() -> bool:
            status.update(watching.status()[0])
            found = {row["group"]: row["status"] for row in status["groups"]}
            return {name: found.get(name) for name in VERDICTS} == VERDICTS

        wait_until(
            are_judged,
            "every group has its verdict",
            timeout_s=VERDICTS_TIMEOUT_S,
            story=lambda: json.dumps(status.get("groups"), indent=1),
        )
        groups = {row["group"]: row for row in status["groups"]}
        assert groups["never"]["lag"] is None, "nothing to judge, and not 0"
        titles = [finding["title"] for finding in status["findings"]]
        assert "data lost on short-0" in titles
        assert status["collector"]["missing_rights"] == []
        _page_agrees(watching)
        await _terminal_agrees(watching)

        scene.freeze()
        wanted = _tools_say(cluster)
        found: dict[str, Any] = {}

        def are_right() -> bool:
            found.update(_figures(watching))
            return found == wanted

        wait_until(
            are_right,
            "all figures are those of Kafka's tools",
            timeout_s=FIGURES_TIMEOUT_S,
            story=lambda: _difference(found, wanted),
        )


def _page_agrees(watching: Installation) -> None:
    def shows() -> bool:
        with urllib.request.urlopen(f"{watching.page}/export/groups.csv", timeout=30) as answer:
            rows = csv.DictReader(io.StringIO(answer.read().decode()))
            found = {row["group"]: row["status"] for row in rows}
        return {name: found.get(name) for name in VERDICTS} == VERDICTS

    wait_until(shows, "the page has the same verdicts", timeout_s=60)


async def _terminal_agrees(watching: Installation) -> None:
    document = json.loads((watching.data / "installation.json").read_text())
    watched = WatchedCluster(
        bootstrap=document["watched"][0]["bootstrap"],
        cluster_id=ClusterId(document["watched"][0]["cluster_id"]),
    )
    reader = AggregatesReader(watching.store)
    feed = SnapshotFeed(reader, cluster=watched.cluster_id)
    services = Services(feed=feed, history=reader, watched=watched, bus=watching.bootstrap)
    app = PartiscopeApp(services, path="groups")
    try:
        async with app.run_test(size=(160, 48)) as pilot:

            def shows() -> bool:
                picture = app.export_screenshot().replace("&#160;", " ")
                lines = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
                text = " ".join(lines)
                return all(name in text and verdict in text for name, verdict in VERDICTS.items())

            await settle(pilot, shows, "the terminal has the same verdicts")
    finally:
        feed.stop()


def _figures(watching: Installation) -> dict[str, Any]:
    """Lags, placement and sizes as the store has them."""
    aggregates = watching.aggregates()
    assert aggregates is not None
    tables = {name: aggregates.tables[name].to_pylist() for name in _NAMES}
    return {
        "lags": {
            (row["group_id"], f"{row['topic']}-{row['partition']}"): (
                row["committed_offset"],
                row["end_offset"],
                row["lag"],
            )
            for row in tables["commits"]
        },
        "placement": {
            TopicPartition(row["topic"], row["partition"]): (
                row["leader"],
                list(row["replicas"]),
                sorted(row["isr"]),
            )
            for row in tables["partitions"]
            if row["topic"] in TOPICS
        },
        "sizes": {
            (f"{row['topic']}-{row['partition']}", row["broker"]): row["size_bytes"]
            for row in tables["replicas"]
            if row["topic"] in TOPICS
        },
    }


_NAMES = ("commits", "partitions", "replicas")


def _tools_say(cluster: KafkaCluster) -> dict[str, Any]:
    def tool(name: str, *args: str) -> str:
        done = run_tool(name, "--bootstrap-server", cluster.bootstrap, *args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    lags = {}
    told = tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--describe", "--all-groups"
    )
    for words in map(str.split, told.splitlines()):
        if len(words) >= 6 and words[1] in TOPICS and words[3].isdigit():
            figures = (int(words[3]), int(words[4]), int(words[5]))
            lags[words[0], f"{words[1]}-{words[2]}"] = figures
    placement = {}
    pattern = r"Topic: (\S+)\tPartition: (\d+)\tLeader: (\d+)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)"
    told = tool("org.apache.kafka.tools.TopicCommand", "--describe")
    for topic, number, leader, replicas, isr in re.findall(pattern, told):
        if topic in TOPICS:
            key = TopicPartition(topic, int(number))
            placement[key] = (int(leader), _ids(replicas), sorted(_ids(isr)))
    told = tool("org.apache.kafka.tools.LogDirsCommand", "--describe")
    document = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    sizes = {
        (held["partition"], broker["broker"]): held["size"]
        for broker in document["brokers"]
        for log_dir in broker["logDirs"]
        for held in log_dir["partitions"]
        if held["partition"].rpartition("-")[0] in TOPICS
    }
    assert len(placement) == sum(TOPICS.values()) == 600
    assert len(sizes) == 3 * 600
    return {"lags": lags, "placement": placement, "sizes": sizes}


def _ids(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Each figure that is not as it should be, at most ten of a kind."""
    lines = []
    for kind, right in wanted.items():
        ours = found.get(kind, {})
        wrong = [key for key in {**right, **ours} if right.get(key) != ours.get(key)]
        lines += [f"{kind}: {len(wrong)} differ"]
        lines += [f"  {key}: {ours.get(key)}, not {right.get(key)}" for key in wrong[:10]]
    return "\n".join(lines)
