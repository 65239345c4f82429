"""What documents and help tell to type is what the command line takes."""

import subprocess
import sys
from typing import Any

import pytest

from partiscope.cli.commands import COMMANDS, build_program, loaded
from tests.support.cases import case
from tests.support.documented import documented_commands, words_of
from tests.support.node_cluster import ROOT

FOUND = sorted({*documented_commands(), *(command.example for command in COMMANDS)})


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return {command.name: loaded(command) for command in COMMANDS}


def test_commands_are_found() -> None:
    assert len(FOUND) > 40
    assert any("topics alter" in command for command in FOUND)


def test_a_documented_command_is_taken(program: dict[str, Any]) -> None:
    for command in FOUND:
        with case(command):
            _is_taken(program, command)


def _is_taken(program: dict[str, Any], command: str) -> None:
    name, *words = words_of(command)
    if name.startswith("--"):
        assert name in {word for param in build_program().params for word in param.opts}
        return
    assert name in program, f"no command {name!r}"
    chosen = program[name]
    if hasattr(chosen, "commands"):
        name, *words = words if words and not words[0].startswith("-") else ["list", *words]
        assert name in chosen.commands, f"no command {name!r}"
        chosen = chosen.commands[name]
    chosen.make_context(chosen.name, words)  # raises what the operator would be told


@pytest.mark.parametrize(
    "script",
    ["command_reference", "column_reference", "task_reference", "prometheus_reference"],
)
def test_a_reference_is_what_the_program_says(script: str) -> None:
    """Run the script where it is not."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / f"{script}.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
