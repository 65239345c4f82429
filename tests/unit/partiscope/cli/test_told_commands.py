"""Commands that are told carry only flags that they take, and all that say which cluster."""

from typing import Final

import pytest

from control.model.command_line import CommandFlags
from partiscope.cli.app import run
from partiscope.cli.commands import COMMANDS, Command, loaded

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
