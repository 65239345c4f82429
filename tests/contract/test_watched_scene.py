"""``up --bootstrap`` on a busy cluster of real Kafka: every verdict, then every figure, as page,
terminal and ``status --json`` tell them."""

import asyncio
import csv
import io
import json
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from control.model.ids import ClusterId, TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import build_snapshot
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.browser import chromium, open_page
from tests.support.installation import Installation
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.kafka_scene import TOPICS, VERDICTS, busy
from tests.support.patience import WAIT_S
from tests.support.settle import settle, wait_until
from tui.app import PartiscopeApp
from tui.terminal_session import Services
from tui.widgets.row_table import RowTable

pytestmark = [
    pytest.mark.kafka_oracle,
    pytest.mark.browser,
    pytest.mark.soak,
    pytest.mark.timeout(900),
]

VERDICTS_TIMEOUT_S = 460.0
"""One partition that stands still while its group works on others is waited for 300 s."""
FIGURES_TIMEOUT_S = 120.0
LOST = "data lost on short-0"


@pytest.fixture
def cluster(kafka_libs: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    assert kafka_libs.exists()
    with KafkaCluster(tmp_path / "kafka") as started:
        yield started


def test_every_group_gets_its_verdict_and_every_figure_is_right(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    flags = ("--bootstrap", cluster.bootstrap)
    installation = Installation(tmp_path / "up", flags=flags)
    with busy(cluster.bootstrap) as scene, installation as watching:
        watching.wait_ready()
        wait_until(
            lambda: _judged(watching) == VERDICTS,
            "every group has its verdict",
            timeout_s=VERDICTS_TIMEOUT_S,
            story=lambda: str(_judged(watching)),
        )
        _status_agrees(watching)
        _page_agrees(watching)
        asyncio.run(_terminal_agrees(watching))

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
        _faces_tell(watching, wanted)


def _judged(watching: Installation) -> dict[str, str]:
    """The verdicts by what the store holds now, of the groups that get one."""
    aggregates = watching.aggregates()
    tables = {} if aggregates is None else aggregates.tables
    now_ms = time.time_ns() // 1_000_000
    rows = build_snapshot(tables, version=1, now_ms=now_ms).group_table.to_pylist()
    return {row["group_id"]: row["status"] for row in rows if row["group_id"] in VERDICTS}


def _status_agrees(watching: Installation) -> None:
    status, _ = watching.status()
    groups = {row["group"]: row for row in status["groups"]}
    assert {name: groups[name]["status"] for name in VERDICTS} == VERDICTS
    assert groups["never"]["lag"] is None, "nothing to judge, and not 0"
    assert LOST in [finding["title"] for finding in status["findings"]]
    assert status["collector"]["missing_rights"] == []


def _page_agrees(watching: Installation) -> None:
    errors: list[str] = []
    with chromium() as browser:
        page = open_page(browser, f"{watching.page}/groups", errors)
        for name, verdict in VERDICTS.items():
            row = page.locator(f'.ag-center-cols-container .ag-row[row-id="{name}"]')
            expect(row.locator('[col-id="status"]')).to_contain_text(verdict)
        page.goto(f"{watching.page}/findings")
        expect(page.get_by_text(LOST)).to_be_visible()
    assert errors == []


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
            await settle(
                pilot,
                lambda: VERDICTS.items() <= _statuses(app).items(),
                "the terminal has the same verdicts",
            )
            app.navigator.open("findings")
            await settle(pilot, lambda: LOST in _text(app), "and the lost data")
    finally:
        feed.stop()


def _statuses(app: PartiscopeApp) -> dict[str, str]:
    """What the table on screen says of each group, without the shapes."""
    tables = app.screen.query(RowTable)
    if not tables:
        return {}
    table = tables.first()
    at = {name: place for place, name in enumerate(table.shown)}
    rows = [table.get_row_at(index) for index in range(table.row_count)]
    return {str(row[at["group"]]): str(row[at["status"]]).split()[-1] for row in rows}


def _text(app: PartiscopeApp) -> str:
    picture = app.export_screenshot().replace("&#160;", " ")
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))


def _faces_tell(watching: Installation, wanted: dict[str, Any]) -> None:
    """Page and ``status`` have the very sums that follow from the figures of Kafka's tools."""
    lags: Counter[str] = Counter()
    for (group, _), (_, _, lag) in wanted["lags"].items():
        lags[group] += lag
    held: Counter[int] = Counter()
    for (_, broker), size in wanted["sizes"].items():
        held[broker] += size
    status, _ = watching.status()
    told = {row["group"]: row["lag"] for row in status["groups"] if row["lag"] is not None}
    assert told == lags
    assert {
        row["group"]: int(row["lag"]) for row in _exported(watching, "groups") if row["lag"]
    } == lags
    sizes = {row["broker"]: row["size_bytes"] for row in status["brokers"]}
    assert all(sizes[broker] >= size for broker, size in held.items()), "and internal topics"
    led = {
        (row["topic"], int(row["partition"])): (int(row["leader"]), row["replicas"])
        for row in _exported(watching, "partitions")
        if row["topic"] in TOPICS
    }
    assert led == {
        (name.topic, name.partition): (leader, " ".join(map(str, replicas)))
        for name, (leader, replicas, _) in wanted["placement"].items()
    }


def _exported(watching: Installation, table: str) -> list[dict[str, str]]:
    with urllib.request.urlopen(f"{watching.page}/export/{table}.csv", timeout=WAIT_S) as answer:
        return list(csv.DictReader(io.StringIO(answer.read().decode())))


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
