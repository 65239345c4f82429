"""Plan files between us and Kafka's own tool, on ours and on Kafka: either can run what the other
wrote, and a plan that no longer fits is refused with the way out."""

import asyncio
import json
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from partiscope.cli.app import run
from partiscope.cli.reassignments.plan import before_file
from planner.reassignment_json import format_reassignment, parse_reassignment
from tests.contract.operations_rig import placement_of, topic_with_data
from tests.support.kafka_oracle import run_tool
from tests.support.settle import wait_until

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
PARTITIONS = 6
CROWDED = (101, 102)
CURRENT = "Current partition replica assignment"


def crowded_topic(bootstrap: str) -> str:
    """A topic of which the third broker has nothing."""

    async def create() -> str:
        async with KafkaAdmin.to(bootstrap) as admin:
            placement = dict.fromkeys(range(PARTITIONS), CROWDED)
            return await topic_with_data(admin, placement, records=3)

    return asyncio.run(create())


def placed(bootstrap: str, topic: str) -> dict[int, tuple[int, ...]]:
    """Replicas by partition, as the cluster tells."""

    async def read() -> dict[int, tuple[int, ...]]:
        async with KafkaAdmin.to(bootstrap) as admin:
            return await placement_of(admin, topic)

    return asyncio.run(read())


def execute(bootstrap: str, plan: Path) -> str:
    """Kafka's tool runs a plan to its end; what it printed of the assignment before."""
    shared = ("--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan))
    done = run_tool(TOOL, *shared, "--execute", "--additional")
    assert "Successfully started partition reassignments" in done.stdout, done

    def is_complete() -> bool:
        verified = run_tool(TOOL, *shared, "--verify").stdout
        return verified.count("is completed") == len(parse_reassignment(plan.read_text()))

    wait_until(is_complete, f"{plan.name} is completed")
    return done.stdout.partition(CURRENT)[2].strip().splitlines()[0]


def refusal(bootstrap: str, plan: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """(exit status, message) of running a plan that cannot be."""
    server = ("--bootstrap", bootstrap, "--bus", bootstrap)
    status = run(["reassign", str(plan), *server, "--yes"])
    return status, capsys.readouterr().err


@pytest.mark.usefixtures("kafka_libs")
def test_kafkas_tool_runs_our_plan_and_its_way_back_unchanged(
    bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = crowded_topic(bootstrap)
    plan = tmp_path / "plan.json"
    scope = ("--bootstrap", bootstrap, "--topics", topic, "--goal", "topics")
    assert run(["plan", *scope, "--out", str(plan)]) == 0
    targets = {key.partition: to for key, to in parse_reassignment(plan.read_text()).items()}
    assert sum(103 in replicas for replicas in targets.values()) == PARTITIONS * 2 // 3
    back = before_file(plan)
    assert execute(bootstrap, plan) == back.read_text()
    assert placed(bootstrap, topic) == dict.fromkeys(range(PARTITIONS), CROWDED) | targets

    capsys.readouterr()
    status, said = refusal(bootstrap, plan, capsys)
    assert (status, "the plan changes nothing" in said) == (3, True)
    elsewhere = dict.fromkeys(parse_reassignment(plan.read_text()), (102, 101))
    stale = tmp_path / "stale.json"
    stale.write_text(format_reassignment(elsewhere))
    before_file(stale).write_text(back.read_text())
    status, said = refusal(bootstrap, stale, capsys)
    assert (status, "plan again" in said) == (3, True)

    assert execute(bootstrap, back) == plan.read_text()
    assert placed(bootstrap, topic) == dict.fromkeys(range(PARTITIONS), CROWDED)


def test_a_plan_that_cannot_be_is_refused_with_what_would_work(
    bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = crowded_topic(bootstrap)
    plan = tmp_path / "plan.json"
    for replicas, wanted, words in (
        ([101, 999], 3, f"for {topic}-0 [101, 102] would work"),
        ([101, 101], 2, "names a broker twice"),
    ):
        entry = {"topic": topic, "partition": 0, "replicas": replicas}
        plan.write_text(json.dumps({"partitions": [entry]}))
        status, said = refusal(bootstrap, plan, capsys)
        assert (status, words in said) == (wanted, True), said
    entries = {
        f"{topic}-0: 101,999": "; [101, 102] would work",
        f"{topic}-77: 101,102": f"{topic} has no partition 77 (0–5)",
    }
    for entry_, words in entries.items():
        assert run(["plan", "--bootstrap", bootstrap, "--edit", entry_]) == 2
        assert words in capsys.readouterr().err
    assert placed(bootstrap, topic) == dict.fromkeys(range(PARTITIONS), CROWDED)
