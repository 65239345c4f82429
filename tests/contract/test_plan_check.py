"""`partiscope check` beside Kafka 4.4: its own plan, and two that are made bad by hand."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.watched_cluster import WatchedCluster
from control.operations.errors import InvalidInputError
from control.operations.operation_session import OperationSession
from control.operations.reassignment.plan_check import check_document
from control.views.checked_plan import (
    balance_rows,
    checked,
    figure_rows,
    plan_text,
    uploaded_text,
)
from dashboard.pages.reassignments import check as check_page
from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit
from tests.contract.operations_rig import topic_with_data
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster, ready_admin, run_tool
from tests.support.node_cluster import NodeCluster
from tests.support.patience import WAIT_S
from tui.screens.reassignments import check as check_screen

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
PLACES = {0: (101, 102), 1: (101, 102), 2: (101, 102), 3: (101, 103)}
Places = Mapping[int, tuple[int, ...]]


@pytest.fixture(scope="module")
def topic(kafka_today: KafkaCluster) -> str:
    """Four partitions with data, most of them on two brokers."""

    async def create() -> str:
        async with KafkaAdmin.to(kafka_today.bootstrap) as admin:
            return await topic_with_data(admin, PLACES, records=40)

    return asyncio.run(create())


def test_check_counts_what_a_plan_moves_and_refuses_waste_and_unknown_brokers(
    our_cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two partitions take each other's third replica: nothing gets more even."""

    async def create() -> str:
        async with KafkaAdmin.to(our_cluster.bootstrap) as admin:
            return await topic_with_data(admin, PLACES, records=4)

    topic = asyncio.run(create())
    plan = _written(topic, {2: (101, 103), 3: (101, 102)})
    status, found = _checked(our_cluster, plan, tmp_path, capsys)
    assert status == Exit.DONE, "waste fails only where a limit is given"
    names = ("moved_replicas", "moved_leaders", "least_replicas", "wasted_replicas")
    assert [found[name] for name in names] == [2, 0, 0, 2]
    assert found["moved_bytes"] == found["wasted_bytes"] > 2 * 4 * 1_000
    file = str(tmp_path / "plan.json")
    assert run(["check", file, "--bootstrap", our_cluster.bootstrap, "--max-waste", "20"]) == (
        Exit.REFUSED
    )
    assert "critical waste" in capsys.readouterr().out
    status, found = _checked(our_cluster, _written(topic, {0: (104, 102)}), tmp_path, capsys)
    assert (status, _bad(found)) == (Exit.REFUSED, {"brokers"})


def _tool(kafka: KafkaCluster, tool: str, *words: str) -> str:
    done = run_tool(tool, "--bootstrap-server", kafka.bootstrap, *words, version=KAFKA_TODAY)
    assert done.returncode == 0, done
    return done.stdout


def _counted(kafka: KafkaCluster, topic: str, plan: Places) -> dict[str, int]:
    """What a plan moves, counted from the words of Kafka's own tools and clients."""
    told = _tool(kafka, LOG_DIRS, "--describe", "--topic-list", topic)
    document = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    sizes: dict[str, int] = {}
    for broker in document["brokers"]:
        for log_dir in broker["logDirs"]:
            for replica in log_dir["partitions"]:
                name = replica["partition"]
                sizes[name] = max(sizes.get(name, 0), replica["size"])
    admin = ready_admin(**{"bootstrap.servers": kafka.bootstrap})
    known = admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
    copies = {n: len({*after} - {*known[n].replicas}) for n, after in plan.items()}
    return {
        "moved_replicas": sum(copies.values()),
        "moved_bytes": sum(count * sizes[f"{topic}-{n}"] for n, count in copies.items()),
        "moved_leaders": sum(after[0] != known[n].replicas[0] for n, after in plan.items()),
    }


def _checked(
    kafka: NodeCluster, text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    file = folder / "plan.json"
    file.write_text(text)
    capsys.readouterr()
    status = run(["check", str(file), "--bootstrap", kafka.bootstrap, "--json"])
    return status, json.loads(capsys.readouterr().out)


def _written(topic: str, plan: Places) -> str:
    entries = [{"topic": topic, "partition": n, "replicas": list(it)} for n, it in plan.items()]
    return json.dumps({"version": 1, "partitions": entries})


def _bad(found: dict[str, Any]) -> set[str]:
    return {check["name"] for check in found["checks"] if check["verdict"] == "fail"}


def test_kafkas_own_plan_is_judged_as_its_tool_prints_it(
    kafka_today: KafkaCluster, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "topics.json"
    asked.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    words = ("--generate", "--topics-to-move-json-file", str(asked), "--broker-list", "101,102,103")
    printed = _tool(kafka_today, REASSIGN, *words)
    plan = json.loads(printed.strip().splitlines()[-1])
    places = {it["partition"]: tuple(it["replicas"]) for it in plan["partitions"]}
    status, found = _checked(kafka_today, printed, tmp_path, capsys)
    counted = _counted(kafka_today, topic, places)
    assert {name: found[name] for name in counted} == counted
    assert 0 <= found["least_bytes"] <= found["moved_bytes"]
    assert found["wasted_bytes"] == found["moved_bytes"] - found["least_bytes"]
    assert (status, _bad(found)) == (Exit.DONE, set())


def test_a_plan_that_only_exchanges_brokers_is_all_waste(
    kafka_today: KafkaCluster, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of two partitions takes the third replica set of the other: nothing gets more even."""
    plan = {2: (101, 103), 3: (101, 102)}
    status, found = _checked(kafka_today, _written(topic, plan), tmp_path, capsys)
    counted = _counted(kafka_today, topic, plan)
    assert {name: found[name] for name in counted} == counted
    assert counted["moved_bytes"] > 0
    assert (found["least_replicas"], found["wasted_replicas"]) == (0, 2)
    assert status == Exit.DONE, "waste fails only where a limit is given"
    file = tmp_path / "plan.json"
    limited = ["check", str(file), "--bootstrap", kafka_today.bootstrap, "--max-waste", "20"]
    assert run(limited) == Exit.REFUSED
    assert "critical waste" in capsys.readouterr().out


def test_a_plan_onto_a_broker_that_is_not_there_is_refused(
    kafka_today: KafkaCluster, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = {0: (104, 102), 1: (101, 103)}
    status, found = _checked(kafka_today, _written(topic, plan), tmp_path, capsys)
    counted = _counted(kafka_today, topic, plan)
    assert {name: found[name] for name in counted} == counted
    assert (status, _bad(found)) == (Exit.REFUSED, {"brokers"})
    assert not found["passes"]


async def test_page_and_terminal_judge_a_pasted_plan_as_the_command_does(
    kafka_today: KafkaCluster, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _written(topic, {0: (103, 101), 3: (101, 102)})
    watched = WatchedCluster(bootstrap=kafka_today.bootstrap)
    async with OperationSession(watched, bus=kafka_today.bootstrap, who="tester") as session:
        found = await checked(session, text)
        with pytest.raises(InvalidInputError, match="JSON"):
            await checked(session, "orders-0: 101")
        lost = await checked(session, _written("nowhere", {0: (101, 102)}))
        assert any("nowhere-0 does not exist" in it.reason for it in lost.checks)
        with pytest.raises(InvalidInputError, match="reassignment JSON"):
            await checked(session, " ")
    _, told = await asyncio.to_thread(_checked, kafka_today, text, tmp_path, capsys)
    assert check_document(found, is_strict=False) == told
    shown = check_screen.result(found).plain
    drawn = json.dumps(check_page.result(found), cls=PlotlyJSONEncoder, ensure_ascii=False)
    for row in (*figure_rows(found), *balance_rows(found)):
        assert all(str(cell) in shown for cell in row)
        assert all(str(cell) in drawn for cell in row)
    assert all(it.reason in shown and it.reason in drawn for it in found.checks)


def test_a_plan_is_pasted_or_its_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('\ufeff{"partitions": []}')
    assert plan_text(f" {file} ") == '{"partitions": []}'
    assert plan_text('{"partitions": []}') == '{"partitions": []}'
    assert uploaded_text(file.read_bytes(), "plan.json") == '{"partitions": []}'
    os.mkfifo(tmp_path / "pipe")
    for line, why in {
        str(tmp_path / "none.json"): "no such file",
        str(tmp_path): "directory",
        str(tmp_path / "pipe"): "pipe",
        "~no-such-user/plan.json": "no such file",
    }.items():
        with pytest.raises(InvalidInputError, match=why):
            plan_text(line)
    with pytest.raises(InvalidInputError, match=r"'plan\.json': byte 1 is not UTF-8"):
        uploaded_text(b"\xff", "plan.json")
