"""Writes docs/reference/commands.md from the program itself: every command with every flag; and
partiscope/cli/completion.json, the same for a press of Tab.

    .venv/bin/python scripts/command_reference.py [--check]

With --check it writes nothing, and exits with 1 where the document is not what it would write.
"""

import json
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
COMPLETION: Final = ROOT / "partiscope" / "cli" / "completion.json"
SHARED_MIN: Final = 3
"""A flag that so many commands have, in the same words, is told once."""
HEAD: Final = """\
# Commands

The program itself writes this page (`scripts/command_reference.py`): the same texts as `--help` of
each command. Grammar, exit statuses, times and tables: [Command line](command-line.md).

## Flags of many commands

"""

NAMES: Final = {
    "topic": "topic", "topics": "topic", "like": "topic", "group": "group", "groups": "group",
    "broker": "broker", "resource": "resource", "other": "resource", "config": "config",
    "changes": "config",
}  # fmt: skip
"""Parameters that take a name of the cluster, and of which kind it is."""
LISTS: Final = {
    ("plan", name): f"{kind},…"
    for kind in ("topic", "broker")
    for name in ("topics", "exclude_topics", "exclude_brokers", "remove_brokers", "relieve_brokers")
    if kind in name
}
"""Flags that take several, with commas."""
NEITHER: Final = {("broker", "config"), ("topics create", "topic")}
"""A file, and a name that is new."""

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


def completed() -> str:
    """What may follow a command: its flags with the kind of their value, and its arguments."""
    told: dict[str, Any] = {}
    for command in COMMANDS:
        program = loaded(command)
        if hasattr(program, "commands"):
            told[command.name] = {
                "commands": {
                    name: _completed(f"{command.name} {name}", below)
                    for name, below in program.commands.items()
                    if not below.hidden
                }
            }
        else:
            told[command.name] = _completed(command.name, program)
    return json.dumps(told, indent=1) + "\n"


def _completed(command: str, program: Any) -> dict[str, Any]:
    context = program.make_context("x", [], resilient_parsing=True)

    def kind_of(param: Any) -> str | list[str]:
        choices = [it.value for it in param.shell_complete(context, "") if it.type == "plain"]
        if (command, param.name) in NEITHER:
            return ""
        return choices or LISTS.get((command, param.name)) or NAMES.get(param.name, "")

    flags: dict[str, Any] = {}
    arguments = [it for it in program.params if it.param_type_name == "argument"]
    for param in program.params:
        if param not in arguments and not param.hidden:
            kind = None if param.is_flag else kind_of(param)
            flags |= dict.fromkeys((*param.opts, *param.secondary_opts), kind)
    return {
        "flags": flags,
        "arguments": [kind_of(it) for it in arguments],
        "repeats": any(it.nargs == -1 for it in arguments),
    }


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
    write_or_check(COMPLETION, completed())
