"""Commands that are told carry only flags that they take, and all that say which cluster."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from control.model.command_line import CommandFlags, command, typed, use_flags
from partiscope.cli.app import run
from partiscope.cli.commands import COMMANDS, Command, loaded
from partiscope.cli.shared.options import settings_with

FLAGS: Final = CommandFlags(
    data="--data d", cluster="--cluster c", bus="--bus b", store="--store s"
)
PARTS: Final = frozenset({"up", "cluster", "broker", "metrics", "collect", "demo", "executor"})
"""They run something by the flags of whoever starts them."""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda it: it.name)
def test_a_told_command_is_taken_and_whole(command: Command) -> None:
    program = loaded(command)
    for name, each in getattr(program, "commands", {"": program}).items():
        told = {flag.split()[0] for flag in FLAGS.of(f"{command.name} {name}".strip())}
        taken = {option for it in each.params for option in it.opts}
        assert told <= taken, f"{command.name} {name} does not take {told - taken}"
        if command.name not in PARTS:
            assert {"--data", "--cluster", "--bus", "--store"} & taken == told


@pytest.fixture
def _flags_as_before() -> Iterator[None]:
    yield
    use_flags(CommandFlags)


@pytest.mark.usefixtures("_flags_as_before")
def test_told_commands_keep_the_flags_that_theirs_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "two words"
    data.mkdir()
    run(["moves", "--bootstrap", "127.0.0.1:1", "--bus", "127.0.0.1:1"])
    settings_with(data=data, bootstrap="127.0.0.1:1")
    given = f"--data '{data}' --bootstrap 127.0.0.1:1"
    assert command("moves watch 7") == f"partiscope moves watch 7 {given} --bus 127.0.0.1:1"
    assert command("tail orders") == f"partiscope tail orders {given}"
    run(["moves", "--bootstrap", "127.0.0.1:1"])
    assert "--bus" not in command("moves watch 7")
    use_flags(lambda: FLAGS)
    watches = "`partiscope up --bootstrap a:1`"
    assert typed(watches) == watches, "another cluster has a data directory of its own"


def test_a_path_in_a_told_command_is_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "two words"
    assert run(["status", "--data", str(missing)]) == 2
    assert f"`partiscope up --data '{missing}'`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "meant"),
    [(("plan", "--goal", "blance"), "balance"), (("moves", "puase"), "pause")],
)
def test_a_mistyped_choice_is_told_with_the_nearest(
    words: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(list(words)) == 2
    told = capsys.readouterr().err
    assert f"Did you mean '{meant}'?" in told
    assert "Value error" not in told


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("tail orders --limit 3", "--count"),
        ("tail orders --from-beginning", "--offset earliest"),
        ("topics list --bootstrap-server localhost:9092", "--bootstrap"),
        ("topics alter orders --replication-factor 3", "`partiscope plan --replication-factor`"),
        ("groups alter billing --to-earliest", "--to earliest"),
        ("groups alter billing --all-topics --to 1h", "no --topic at all"),
        ("produce orders --null", "--value null"),
        ("groups list --colums lag", "--columns"),
        ("topics list --yes", ""),
    ],
)
def test_an_unknown_flag_is_told_with_the_one_that_does_the_same_or_none(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == 2
    told = capsys.readouterr().err
    assert told.rstrip().endswith(f"Did you mean {meant}?" if meant else "--yes")
