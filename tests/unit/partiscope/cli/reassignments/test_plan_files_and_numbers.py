"""`partiscope plan`: files that are none, numbers that are none, and what is written where."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from control.operations import checks
from control.operations.catalogue.moves.reassign import Task, with_task
from partiscope.cli.app import run
from partiscope.cli.reassignments.plan import before_file
from planner.reassignment_json import parse_reassignment
from planner.topology import topology_document
from tests.unit.planner.clusters import cluster

WRONG_USE: Final = 2


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    before = cluster({1: None, 2: None, 3: None}, [(1, 2)] * 6)
    path.write_text(json.dumps(topology_document(before)))
    return path


def plan(topology: Path, *arguments: str) -> int:
    return run(["plan", "--topology", str(topology), *arguments])


_GOOD: Final = json.dumps(topology_document(cluster({1: None, 2: None}, [(1, 2)])))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"3", b'"x"', b"{}", b"\xff\xfe{}", b"NaN",
        b"[" * 100_000, b'{"brokers": ' * 50_000,
        b'{"brokers": ' + b"9" * 5_000 + b"}",
        _GOOD.replace("1", "9" * 5_000, 1).encode(),
        _GOOD.replace(":", ": NaN,", 1).encode(),
        b'{"brokers": [{"id": 1e400}], "partitions": []}',
        b'{"brokers": [{"id": true}], "partitions": []}',
        b'{"brokers": {"1": {}}, "partitions": {}}',
    ],
    ids=range(17),
)  # fmt: skip
def test_a_file_that_is_no_topology_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    assert plan(path) == WRONG_USE
    told = capsys.readouterr()
    assert str(path) in told.err
    assert "Traceback" not in told.err
    assert "set_int_max_str_digits" not in told.err
    assert told.out == ""


@pytest.mark.parametrize("kind", ["missing", "directory", "unreadable"])
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = tmp_path / "plan" / ("x" * 300 if kind == "unreadable" else "t.json")
    if kind == "directory":
        path.mkdir(parents=True)
    assert plan(path) == WRONG_USE
    assert "t.json" in capsys.readouterr().err or kind == "unreadable"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--exclude-brokers", "a"), ("--exclude-brokers", "²"), ("--exclude-brokers", "1_0"),
        ("--exclude-brokers", "1.0"), ("--add-brokers", "-1"), ("--remove-brokers", "9" * 5_000),
        ("--relieve-brokers", "1;2"), ("--remove-brokers", "77"), ("--remove-brokers", "+1"),
        ("--partitions", "t-999"), ("--partitions", "nowhere-0"), ("--topics", "nowhere"),
        ("--keep", "t-"), ("--replication-factor", "4"), ("--replication-factor", "0"),
        ("--edit", "{"), ("--edit", "t-0: 1,x"), ("--edit", "t-0: 77"), ("--edit", "[" * 60_000),
        ("--edit", "t-0: " + "9" * 5_000), ("--edit", "t-0: 1,1"), ("--edit", "t-99999: 1,2"),
        ("--choose", "0"), ("--alternatives", "10"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_wrong_use(
    topology: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    assert plan(topology, option, value) == WRONG_USE
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    assert "4300" not in told.err


def test_ids_may_have_blanks_and_commas_at_the_end(
    topology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(topology, "--exclude-brokers", " 3 , 2,", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert {each["moved_replicas"] for each in made["alternatives"]} == {0}


def test_brokers_are_added_as_by_the_form(
    topology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_goal = {}
    for flags in ((), ("--goal", "minimal"), ("--goal", "balance")):
        assert plan(topology, "--add-brokers", "3", *flags, "--json") == 0
        made = json.loads(capsys.readouterr().out)
        by_goal[flags] = [each["moved_replicas"] for each in made["alternatives"]]
    assert by_goal[()] == by_goal["--goal", "minimal"]
    assert with_task({"add_brokers": "3"})["task"] == Task.ADD_BROKERS


@pytest.mark.parametrize("text", ["a", "²", "٣", "1_0", "9" * 5_000, "+1", "1;2"])
def test_the_form_refuses_the_ids_that_the_command_refuses(text: str) -> None:
    assert checks.broker_ids(text) is not None
    assert checks.broker_ids(" 3 , 2,") is None


def test_a_plan_and_its_way_back_are_written(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    assert plan(topology, "--out", str(out), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    targets = parse_reassignment(out.read_text())
    back = parse_reassignment((tmp_path / "plan.before.json").read_text())
    assert targets.keys() == back.keys()
    assert set(back.values()) == {(1, 2)}
    assert all(targets[key] != back[key] for key in targets)
    moved = made["alternatives"][0]["moved_replicas"]
    assert moved == sum(len(set(targets[key]) - set(back[key])) for key in targets)


@pytest.mark.parametrize("name", ["plan", "plan.tar.json", ".json", "a b.json"])
def test_the_way_back_never_has_the_plans_name(name: str) -> None:
    assert before_file(Path(name)) != Path(name)
    assert before_file(Path(name)).parent == Path(name).parent


def test_a_choice_that_is_not_on_offer_writes_nothing(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    assert plan(topology, "--out", str(out), "--choose", "9") == WRONG_USE
    assert "9" in capsys.readouterr().err
    assert not out.exists()
    assert not before_file(out).exists()


@pytest.mark.parametrize("blocked", ["plan.json", "plan.before.json", "nowhere/plan.json"])
def test_what_cannot_be_written_is_named_and_no_half_is_left(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], blocked: str
) -> None:
    """A plan without its way back would be run as if there were one."""
    out = tmp_path / ("nowhere/plan.json" if "nowhere" in blocked else "plan.json")
    if "nowhere" not in blocked:
        (tmp_path / blocked).mkdir()
    assert plan(topology, "--out", str(out)) == 1
    named = tmp_path / blocked.partition("/")[0]
    assert str(named) in capsys.readouterr().err
    assert not out.is_file()


def test_an_older_plan_stays_whole_where_the_new_one_cannot_be_written(
    topology: Path, tmp_path: Path
) -> None:
    out = tmp_path / "plan.json"
    out.write_text("the older plan")
    before_file(out).mkdir()
    assert plan(topology, "--out", str(out)) == 1
    assert out.read_text() == "the older plan"


@pytest.mark.parametrize("out", ["", ".", "/", ".."])
def test_a_name_of_no_file_is_told(
    topology: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert plan(topology, "--out", out) in (1, WRONG_USE)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["cluster.json"]


def test_an_edit_is_a_text_or_the_file_of_that_name(
    topology: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = min(_keys(topology))
    for edit in (f"{key}: 3,2", str(_file(tmp_path / "edit.txt", f"\ufeff{key}: 3,2\n"))):
        assert plan(topology, "--edit", edit, "--json") == 0
        (first,) = json.loads(capsys.readouterr().out)["alternatives"]
        targets = parse_reassignment(json.dumps(first["assignment"]))
        assert {str(each): replicas for each, replicas in targets.items()} == {key: (3, 2)}
    odd = tmp_path / "odd.txt"
    odd.write_bytes(b"\xff\xfe")
    assert plan(topology, "--edit", str(odd)) == WRONG_USE
    assert str(odd) in capsys.readouterr().err


def _file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _keys(topology: Path) -> list[str]:
    document: Any = json.loads(topology.read_text())
    return [f"{it['topic']}-{it['partition']}" for it in document["partitions"]]
