"""Writes docs/reference/tasks.md from the declaration of tasks: the steps of each on both faces.

    .venv/bin/python scripts/task_reference.py [--check]

With --check it writes nothing, and exits with 1 where the document is not what it would write.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from command_reference import ROOT, write_or_check

from tests.support.tasks import TASKS
from tests.support.tasks.task import Kind, Step, Task

DOCUMENT: Final = ROOT / "docs" / "reference" / "tasks.md"
PEERS: Final = ROOT / "tests" / "support" / "tasks" / "peers.json"
"""What five other tools document about each task, and which documents say so."""
HEAD: Final = """\
# Everyday tasks

The declaration of the tasks writes this page (`scripts/task_reference.py`).
`tests/e2e/test_tasks.py` does each task on a real cluster, in Chromium and in a terminal.
It checks a value that is there only once the task is done. Kafka's own client is asked for changes,
and the command line for a pause.

A step is a click, a key or a chord such as `g t`, or a filled field. A filled field counts once,
with the keys that lead to it and the Enter that ends it. No task takes more than four steps.
Each task begins at the view in the second column.
"""


def written() -> str:
    """The whole document."""
    parts = [HEAD]
    peers = json.loads(PEERS.read_text())
    for kind in Kind:
        parts += _section(kind, [task for task in TASKS if task.kind is kind], peers)
    parts += _read(peers)
    return "\n".join(parts).rstrip() + "\n"


def _section(kind: Kind, tasks: Sequence[Task], peers: dict[str, Any]) -> Iterator[str]:
    if tasks:
        yield f"## {kind.value.capitalize()}\n"
        yield "| task | begins at | page | terminal |\n|---|---|---|---|"
        for it in tasks:
            start = _named(it.start)
            yield f"| {it.asks} | `{start}` | {_told(it.page)} | {_told(it.terminal)} |"
        tools = list(peers["versions"])
        yield "\nOther tools, by their documents (offered: without steps; –: not told):\n"
        yield f"| task | {' | '.join(tools)} |\n|{'---|' * (len(tools) + 1)}"
        for it in tasks:
            said = " | ".join(peers["tasks"][it.asks][tool] for tool in tools)
            yield f"| {it.asks} | {said} |"
        yield ""


def _read(peers: dict[str, Any]) -> Iterator[str]:
    """Which versions of the peers' documents, and when they were read."""
    yield "## What was read of other tools\n"
    yield f"Read on {peers['read_on']}. No other tool was run: its documents alone are quoted."
    yield "–: no document that was read tells it; the tool may offer it."
    yield "*No*: the tool does nothing of that kind."
    yield f"`{PEERS.relative_to(ROOT)}` names each document.\n"
    yield "| tool | version of its documents |\n|---|---|"
    for tool, version in peers["versions"].items():
        yield f"| {tool} | {version} |"


def _named(words: str) -> str:
    """Things of a face as an operator would name them."""
    return words.replace("-{face}", "").format(broker="103", move="mv-3f9a21c4", rate="40MiB")


def _told(steps: Sequence[Step]) -> str:
    """How many, then which."""
    words = _named(", ".join(map(str, steps)))
    return f"{len(steps)}: {words}" if steps else "0: it is there"


if __name__ == "__main__":
    write_or_check(DOCUMENT, written())
