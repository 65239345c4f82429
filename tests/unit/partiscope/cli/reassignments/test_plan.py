"""`partiscope plan` offline: what it answers, what it refuses and with which way out."""

import json
from pathlib import Path
from typing import Any

import pytest

from partiscope.cli.app import run
from planner.reassignment_json import parse_reassignment
from planner.topology import topology_document
from tests.support.phrases import lacking
from tests.unit.planner.clusters import cluster, seeded


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    before = cluster({1: None, 2: None, 3: None}, [(1, 2)] * 6)
    path.write_text(json.dumps(topology_document(before)))
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The document on stdout."""
    assert run(["plan", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_edited_plan_is_judged_again_and_can_be_run(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    assert run(["plan", "--topology", str(topology), "--out", str(out)]) == 0
    targets = parse_reassignment(out.read_text())
    key = min(targets)
    edited = json.loads(out.read_text())
    edited["partitions"][0]["replicas"] = [3, 1]
    out.write_text(json.dumps(edited))
    capsys.readouterr()
    made = answer(capsys, "--topology", str(topology), "--edit", str(out))
    (first,) = made["alternatives"]
    assert parse_reassignment(json.dumps(first["assignment"])) == {**targets, key: (3, 1)}
    assert first["lower_bound_bytes"] <= first["moved_bytes"]
    assert first["balance"]["replicas"] != made["balance_before"]["replicas"]


def test_racks_may_be_required(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "racks.json"
    path.write_text(json.dumps(topology_document(cluster({1: "a", 2: "b", 9: None}, [(1, 2)] * 6))))
    made = answer(capsys, "--topology", str(path))
    assert made["limits"][0].startswith("broker 9 has no rack (broker.rack): it counts")
    assert run(["plan", "--topology", str(path), "--require-racks"]) == 2
    assert not lacking(capsys.readouterr().err, "racks are required", "broker 9", "set broker.rack")


def test_names_may_have_blanks_between(topology: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = answer(capsys, "--topology", str(topology), "--exclude-topics", "tmp*, t*")
    assert [each["moved_replicas"] for each in made["alternatives"]] == [0]


def test_files_are_utf_8_and_longer_texts_than_names_of_files_are_entries(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    entries = [{"topic": "t", "partition": n, "replicas": [3, 1]} for n in range(6)]
    text = json.dumps({"version": 1, "partitions": entries})
    plan.write_text(text, encoding="utf-16")
    assert run(["plan", "--topology", str(topology), "--edit", str(plan)]) == 2
    assert "is not UTF-8. Save it as UTF-8" in capsys.readouterr().err
    plan.write_text(text, encoding="utf-8-sig")
    made = [
        answer(capsys, "--topology", str(topology), "--edit", each) for each in (str(plan), text)
    ]
    assert len(text) > 255
    assert made[0]["alternatives"] == made[1]["alternatives"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--edit", "t-0: 1,9"), "; [1, 2] would work"),
        (("--edit", "t-0: 1,1"), "names a broker twice; [1, 2] would work"),
        (("--edit", "t-9: 1,2"), "t has no partition 9 (0–5)"),
        (("--edit", "nonsense"), "is no entry like"),
        (("--remove-brokers", "9"), "not among brokers 1, 2, 3"),
        (("--replication-factor", "4"), "At most 3 is possible"),
        (("--topics", "orders"), "no topic matches orders"),
        (("--keep", "t-9"), "partition t-9 to keep: t has no partition 9 (0–5)"),
        (("--partitions", "t-9"), "partition t-9 to move: t has no partition 9 (0–5)"),
        (("--goal", "traffic"), "no rate is known"),
    ],
)
def test_wrong_input_is_refused_with_the_way_out(
    arguments: tuple[str, str],
    words: str,
    topology: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "--topology", str(topology), *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert "Traceback" not in said.err


def test_any_plan_of_the_table_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "cluster.json", tmp_path / "plan.json"
    path.write_text(json.dumps(topology_document(seeded(4, joined=3, disorder=0.3))))
    asked = ("--topology", str(path))
    offered = answer(capsys, *asked)["alternatives"]
    assert len(offered) == 3
    assert run(["plan", *asked, "--out", str(out), "--choose", "2"]) == 0
    wanted = parse_reassignment(json.dumps(offered[1]["assignment"]))
    assert parse_reassignment(out.read_text()) == wanted
    out.unlink()
    assert run(["plan", *asked, "--out", str(out), "--choose", "9"]) == 2
    assert "3 plans on offer; nothing was written" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deep"),
        ('{"brokers": ' + "9" * 5000 + "}", "digits"),
        ('{"brokers": [{"id": 1, "capacity": 9007199254740993}], "partitions": []}', "not 900719"),
    ],
    ids=["deep", "endless number", "rounded"],
)
def test_a_hostile_file_is_refused_with_its_reason(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert run(["plan", "--topology", str(path)]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert run(["check", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err
