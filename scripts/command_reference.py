"""Writes docs/reference/commands.md from the program itself: every command with every flag.

    .venv/bin/python scripts/command_reference.py [--check]

With --check it writes nothing, and exits with 1 where the document is not what it would write.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from partiscope.cli.commands import COMMANDS, Command, loaded  # noqa: E402 (no package)

DOCUMENT: Final = ROOT / "docs" / "reference" / "commands.md"
SHARED_MIN: Final = 3
"""A flag that so many commands have, in the same words, is told once."""
HEAD: Final = """\
# Commands

The program itself writes this page (`scripts/command_reference.py`): the same texts as `--help` of
each command. Grammar, exit statuses, times and tables: [Command line](command-line.md).

## Flags of many commands

"""

Flag = tuple[str, str]


def write_or_check(document: Path, text: str) -> None:
    """Write the document, or with --check say whether it is current."""
    if "--check" not in sys.argv[1:]:
        document.write_text(text)
    elif document.read_text() != text:
        sys.exit(f"{document.relative_to(ROOT)} is not current: run {sys.argv[0]}")


def written() -> str:
    """The whole document."""
    found = [(name, command, program) for command in COMMANDS for name, program in _named(command)]
    counted = Counter(flag for _, _, program in found for flag in _flags(program))
    shared = {it for it, count in counted.items() if count >= SHARED_MIN and it[0].startswith("--")}
    lines = [HEAD, *_listed(sorted(shared))]
    for name, command, program in found:
        lines += _told(name, command, program, shared)
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def _named(command: Command) -> Iterator[tuple[str, Any]]:
    program = loaded(command)
    if not hasattr(program, "commands"):
        yield command.name, program
        return
    for name, below in program.commands.items():
        yield f"{command.name} {name}", below


def _told(name: str, command: Command, program: Any, shared: set[Flag]) -> Iterator[str]:
    flags = _flags(program)
    yield f"## {name}\n"
    told = _plain(" ".join(program.help.split()))
    told += "" if told.endswith(".") else "."
    if also := [flag.split()[0].rstrip(",") for flag, why in flags if (flag, why) in shared]:
        told += f" Also `{'`, `'.join(also)}`."
    if command.example.startswith(f"partiscope {name} "):
        told += f" Example: `{command.example}`."
    yield told + "\n"
    yield from _listed([flag for flag in flags if flag not in shared])


def _flags(program: Any) -> list[Flag]:
    context = program.make_context("x", [], resilient_parsing=True)
    records = (param.get_help_record(context) for param in program.params)
    return [_flag(*record) for record in records if record and not record[0].startswith("-h,")]


def _flag(flag: str, why: str) -> Flag:
    return flag.replace(" range>", ">"), _plain(" ".join(why.split()))


def _listed(flags: list[Flag]) -> Iterator[str]:
    yield from (f"- `{flag}`: {why}" for flag, why in flags)
    yield ""


def _plain(text: str) -> str:
    """Ranges in words, and nothing that Markdown would take for its own."""
    text = re.sub(r"(-?\d+)<=x<=(\d+)", r"\1 to \2", text)
    text = re.sub(r"x>=(\d+)", r"at least \1", text)
    return re.sub(r"(?<!`)\*(?!`)", r"\\*", text).replace("<", "&lt;")


if __name__ == "__main__":
    write_or_check(DOCUMENT, written())
