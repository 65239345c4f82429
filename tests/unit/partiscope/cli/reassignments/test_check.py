"""`partiscope check` offline: all faults of a file at once, and the command that runs it."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from partiscope.cli.app import run
from planner.topology import topology_document
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    before = cluster({1: None, 2: None, 3: None}, [(1, 2)] * 6)
    path.write_text(json.dumps(topology_document(before)))
    return path


def plan_of(path: Path, *entries: tuple[str, int, list[Any]]) -> Path:
    partitions = [{"topic": t, "partition": p, "replicas": r} for t, p, r in entries]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return path


def test_all_faults_of_a_file_are_told_at_once(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = [("t", number, [3]) for number in range(5)]
    entries = (("t", 9, [1]), ("nowhere", 0, [1]), ("t", 5, [7, 8]), *lost)
    plan = plan_of(tmp_path / "plan.json", *entries)
    assert run(["check", str(plan), "--topology", str(topology)]) == 3
    told = capsys.readouterr()
    assert not lacking(told.out, "nowhere-0", "t has no partition 9", "broker 7")
    assert "to run it" not in told.err
    document = json.loads(plan.read_text())
    document["partitions"].append({"topic": "t", "partition": 6, "replicas": []})
    plan.write_text(json.dumps(document))
    assert run(["check", str(plan), "--topology", str(topology)]) == 2
    words = ("partitions[8].replicas is empty", "nowhere-0", "broker 7")
    assert not lacking(capsys.readouterr().err, *words)


def test_a_plan_that_passes_is_told_with_the_command_that_runs_it(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(tmp_path / "a 'plan'.json", ("t", 0, [3, 2]))
    asked = ["--topology", str(topology), "--throttle", "5MiB"]
    assert run(["check", str(plan), *asked]) == 0
    (line,) = [it for it in capsys.readouterr().err.splitlines() if "to run it" in it]
    words = shlex.split(line.partition("to run it: ")[2])
    assert words[:3] == ["partiscope", "reassign", str(plan)]
    assert words[3:5] == ["--throttle", "5MiB"]
