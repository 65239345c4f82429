"""Create, alter, describe, delete: a flag means the same everywhere; on ours and on Kafka."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partiscope.cli.app import run
from partiscope.cli.commands import COMMANDS, loaded
from partiscope.cli.shared.exits import Exit
from tests.contract.group_clients import produce
from tests.contract.test_odd_words import SERVE

Typed = Callable[..., tuple[int, str, str]]
CHANGE = (
    "topics create", "topics alter", "topics delete", "groups alter", "groups delete", "elect",
    "reassign", "moves",
)  # fmt: skip


@pytest.fixture
def typed(
    bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Typed:
    """Runs a command on the cluster; its status, output and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTISCOPE_BOOTSTRAP", bootstrap)

    def type_(*words: str) -> tuple[int, str, str]:
        status = run(list(words))
        told = capsys.readouterr()
        return status, told.out, told.err

    return type_


def _document(typed: Typed, *words: str) -> dict[str, Any]:
    status, out, err = typed(*words, "--json")
    assert status == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def _partitions(typed: Typed, topic: str) -> int:
    return len(_document(typed, "topics", "describe", topic)["partitions"])


def test_a_topic_from_create_to_delete(typed: Typed) -> None:
    name = "grammar-topic"
    assert _document(typed, "topics", "create", name, "--dry-run")["dry_run"]
    assert typed("topics", "describe", name)[0] == Exit.WRONG_USE
    (done,) = _document(typed, "topics", "create", name)["done"]
    count = _partitions(typed, name)
    assert f"is created: {count} partition" in done
    configs = _document(typed, "configs", "describe", "broker:101", "--filter", "num.partitions")
    assert str(count) == configs["configs"][0]["value"]

    alter = ("topics", "alter", name, "--partitions", "4", "--config", "retention.ms=1000")
    changes = _document(typed, *alter, "--dry-run")["changes"]
    assert changes["partitions"] == {"now": count, "then": 4}
    status, _, err = typed(*alter)
    assert (status, "add --yes" in err) == (Exit.REFUSED, True)
    assert _partitions(typed, name) == count
    assert typed(*alter, "--yes")[0] == 0
    assert _partitions(typed, name) == 4
    topic = f"topic:{name}"
    assert typed("configs", "alter", topic, "--config", "retention.ms=2000", "--yes")[0] == 0
    described = _document(typed, "configs", "describe", topic, "--filter", "retention.ms")
    values = {each["name"]: each["value"] for each in described["configs"]}
    assert (described["resource"], values["retention.ms"]) == (name, "2000")
    assert typed(*alter[:3], "--config", "retention.ms=1000", "--yes")[0] == 0
    found = _document(typed, "configs", "--filter", "retention.ms")["configs"]
    (own,) = (each for each in found if each["resource"] == name)
    assert (own["name"], own["value"], own["source"]) == ("retention.ms", "1000", "topic")

    for wrong, told in (
        (("--partitions", "4"), "has 4 partitions"),
        (("--config", "retention.mss=1"), "retention.mss; did you mean"),
        ((), "name what to alter"),
    ):  # fmt: skip
        status, _, err = typed("topics", "alter", name, *wrong)
        assert (status, told in err) == (Exit.WRONG_USE, True), err
    assert typed("topics", "delete", name, "--dry-run")[0] == 0
    assert typed("topics", "delete", name)[0] == Exit.REFUSED
    assert _document(typed, "topics", "delete", name, "--yes")["dry_run"] is False
    assert typed("topics", "describe", name)[0] == Exit.WRONG_USE


def test_several_topics_are_deleted_by_one_confirmation(typed: Typed) -> None:
    names = [f"grammar-{word}" for word in ("one", "two", "three")]
    for name in names:
        assert typed("topics", "create", name, "--partitions", "1")[0] == 0
    delete = ("topics", "delete", *names)
    assert set(_document(typed, *delete, "--dry-run")["changes"]) == set(names)
    status, _, err = typed(*delete)
    assert (status, "add --yes" in err) == (Exit.REFUSED, True)
    status, _, err = typed(*delete, "grammar-none", "--yes")
    assert status == Exit.FAILED
    assert "3 of 3 topics done" in err
    assert "1 row not done: ✖ grammar-none" in err
    for name in names:
        assert typed("topics", "describe", name)[0] == Exit.WRONG_USE


def test_offsets_of_a_group_go_where_they_are_told(typed: Typed, bootstrap: str) -> None:
    topic, group = "grammar-offsets", "grammar-group"
    assert typed("topics", "create", topic, "--partitions", "1")[0] == 0
    produce(bootstrap, topic, 5)

    def set_to(to: str, *words: str) -> int:
        alter = ("groups", "alter", group, "--create", "--topic", topic, f"--to={to}", *words)
        moved: int = _document(typed, *alter)["changes"][f"{topic}-0"]["then"]
        return moved

    assert [set_to(to, "--dry-run") for to in ("latest", "earliest", "3", "1h", "2001-01-01")] == [
        5, 0, 3, 0, 0]  # fmt: skip
    assert (
        typed("groups", "alter", group, "--create", "--topic", topic, "--to", "3")[0]
        == Exit.REFUSED
    )
    assert set_to("3", "--yes") == 3
    assert set_to("-1", "--dry-run") == 2
    (row,) = _document(typed, "groups", "describe", group)["partitions"]
    assert (row["committed"], row["lag"]) == (3, 2)
    status, _, err = typed("groups", "alter", group, "--topic", topic, "--to", "soon")
    assert (status, "'soon'" in err) == (Exit.WRONG_USE, True)
    assert typed("groups", "delete", group, "--dry-run")[0] == 0
    assert typed("groups", "delete", group)[0] == Exit.REFUSED
    assert typed("groups", "delete", group, "--yes")[0] == 0


def test_offsets_are_exported_and_come_back(typed: Typed, bootstrap: str, tmp_path: Path) -> None:
    topic, group = "grammar-exported", "grammar-exporter"
    assert typed("topics", "create", topic, "--partitions", "2")[0] == 0
    produce(bootstrap, topic, 6)
    alter = ("groups", "alter", group)
    assert typed(*alter, "--create", "--topic", topic, "--to", "latest", "--yes")[0] == 0
    status, written, _ = typed("groups", "export", group)
    ends = {row["partition"]: row["committed"]
            for row in _document(typed, "groups", "describe", group)["partitions"]}  # fmt: skip
    assert status == 0
    assert written.splitlines() == [f"{topic},{number},{ends[number]}" for number in (0, 1)]
    saved = tmp_path / "offsets.csv"
    saved.write_text(written)
    assert typed(*alter, "--to", "earliest", "--yes")[0] == 0
    told = _document(typed, *alter, "--from-file", str(saved), "--dry-run")["changes"]
    assert {key: change["then"] for key, change in told.items()} == {
        f"{topic}-{number}": end for number, end in ends.items() if end}  # fmt: skip
    assert typed(*alter, "--from-file", str(saved), "--yes")[0] == 0
    assert typed("groups", "export", group)[1] == written
    saved.write_text(f"{topic},0,99999\n{topic},7,0\n")
    status, _, err = typed(*alter, "--from-file", str(saved), "--yes")
    assert (status, f"{topic} has" in err or "7" in err) == (Exit.WRONG_USE, True)
    saved.write_text(f"{topic},0,99999\n")
    status, _, err = typed(*alter, "--from-file", str(saved), "--dry-run")
    assert (status, "outside the log" in err) == (0, True)
    saved.write_text("\n")
    status, _, err = typed(*alter, "--from-file", str(saved), "--yes")
    assert (status, "holds no offsets" in err) == (Exit.WRONG_USE, True)
    for words in ((), ("--to", "1", "--from-file", str(saved))):
        assert typed(*alter, *words)[0] == Exit.WRONG_USE
    assert typed("groups", "export", "grammar-none")[0] == Exit.WRONG_USE
    assert typed("groups", "delete", group, "--yes")[0] == 0


def test_an_election_is_told_before_and_after(typed: Typed) -> None:
    told = _document(typed, "elect", "--dry-run")
    assert (told["dry_run"], told["done"]) == (True, [])
    assert _document(typed, "elect")["dry_run"] is False


def test_what_spark_needs_is_told_to_scripts(typed: Typed) -> None:
    made = _document(typed, "setup")
    assert made["java"]["version"] in (17, 21)
    assert made["jars"]
    assert all(Path(jar).is_file() for jar in made["jars"])


def test_every_command_has_the_flags_of_the_grammar() -> None:
    for name, command in _leaves():
        flags = {word for param in command.params for word in param.opts}
        assert "--data" in flags, name
        if SERVE.isdisjoint({name, name.split()[0]}) and not command.hidden:
            assert "--json" in flags, name
        if name in CHANGE:
            assert {"--dry-run", "--yes"} <= flags, name


def _leaves() -> Iterator[tuple[str, Any]]:
    for command in COMMANDS:
        found = loaded(command)
        if command.is_group:
            assert {"list", "describe"} <= found.commands.keys(), command.name
            for name, each in found.commands.items():
                yield f"{command.name} {name}", each
        else:
            yield command.name, found
