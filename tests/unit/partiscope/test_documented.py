"""What documents and help tell to type is what the command line takes."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from partiscope.cli.commands import COMMANDS, build_program, loaded
from tests.support.node_cluster import ROOT

DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_TYPED = re.compile(r"^(?:\.venv/bin/)?partiscope ", re.MULTILINE)
_INLINE = re.compile(r"`(partiscope [^`]+)`")
_NOT_TYPED = re.compile(r"…|NAME\b|\.\.\.")


def _commands() -> Iterator[str]:
    """Lines of code blocks, with their continuations, and commands within sentences."""
    for document in DOCUMENTS:
        text = document.read_text()
        blocks = text.split("```")
        joined = "\n".join(blocks[1::2]).replace("\\\n", " ")
        lines = [line.strip() for line in joined.splitlines()]
        sentences = re.sub(r"\s+", " ", " ".join(blocks[0::2]))
        for typed in (*filter(_TYPED.match, lines), *_INLINE.findall(sentences)):
            command = typed.removeprefix(".venv/bin/")
            if not _NOT_TYPED.search(command):
                yield command


FOUND = sorted({*_commands(), *(command.example for command in COMMANDS)})


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return {command.name: loaded(command) for command in COMMANDS}


def test_commands_are_found() -> None:
    assert len(FOUND) > 40
    assert any("topics alter" in command for command in FOUND)


@pytest.mark.parametrize("command", FOUND)
def test_a_documented_command_is_taken(program: dict[str, Any], command: str) -> None:
    _, name, *words = shlex.split(re.split(r" [|>] ", command)[0], comments=True)
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


def test_the_reference_of_commands_is_what_the_program_says() -> None:
    """Run `scripts/command_reference.py` where it is not."""
    done = subprocess.run(
        [sys.executable, "scripts/command_reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
