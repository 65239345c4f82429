"""Texts for operators on a screen: commands are links to views, and flags are left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from control.kafka.errors import KafkaPortError
from control.operations.errors import OperationError
from control.views.paths import ViewPath

_COMMAND: Final = re.compile(r"`partiscope (?P<words>[^`]*)`")
_ASIDE: Final = re.compile(r" \(`--[^`]*`\)")
_LISTS: Final = {
    "moves": "Moves",
    "journal": "Journal",
    "alerts": "Alerts",
    "topics": "Topics",
    "groups": "Groups",
    "brokers": "Brokers",
    "plan": "Plan",
    "status": "Overview",
    "check": "Check",
}
"""Commands with a view of their own."""
_NAMED: Final = {"moves": ("move", "move"), "topics": ("topic", "topic"),
                 "groups": ("group", "group"), "brokers": ("broker", "broker")}  # fmt: skip
_VIEWS: Final = {"status": "overview"}


@dataclass(frozen=True, slots=True)
class Part:
    """Words of a text; with a ``path`` they lead there."""

    words: str
    path: str = ""


def without_flags(text: str) -> str:
    """A text without what it adds for who types, as in ``tick Create it (`--create`)``."""
    return _ASIDE.sub("", text)


def explained(error: KafkaPortError | OperationError) -> str:
    """An error as sentences: what happened, why, and what to do next."""
    return f"{str(error).rstrip('.')}. Next: {error.next_step}."


def linked(text: str) -> Iterator[Part]:
    """The parts of a text. A command that starts a process has no view and stays as it is."""
    text, at = without_flags(text), 0
    for found in _COMMAND.finditer(text):
        if link := _link(found["words"].split()):
            if found.start() > at:
                yield Part(text[at : found.start()])
            yield link
            at = found.end()
    if text[at:]:
        yield Part(text[at:])


def _link(words: list[str]) -> Part | None:
    flags = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    command, *rest = words[:flags] or [""]
    if rest[:1] == ["describe"] and command == "configs" and len(rest) > 1:
        return _configs(rest[1])
    is_of_terminal = command == "alerts" and rest[:1] not in ([], ["list"])
    if command not in _LISTS or is_of_terminal:
        return None
    if command in _NAMED and len(rest) > 1 and rest[0] != "create":
        view, parameter = _NAMED[command]
        path = ViewPath(view=view, params={parameter: rest[1]})
        verb = "" if rest[0] in ("show", "watch", "describe") else f"{rest[0]} "
        return Part(f"{verb}{rest[1]}", str(path))
    return Part(_LISTS[command], str(ViewPath(view=_VIEWS.get(command, command))))


def _configs(resource: str) -> Part:
    """The configs of ``broker:101``, ``topic:orders`` or ``orders``."""
    kind, _, name = resource.rpartition(":")
    kind = "broker" if kind == "broker" else "topic"
    return Part(f"Configs of {name}", str(ViewPath(view=f"{kind}_configs", params={kind: name})))
