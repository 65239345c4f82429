"""Completion in bash, zsh and fish: commands, flags, choices, and the names of the cluster.

It runs within 0.1 s of CPU, so it imports none of the commands: ``completion.json`` tells them, as
`scripts/command_reference.py` writes it. Names are asked of the cluster itself, since only it knows
the ones of now.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from partiscope.cli.cluster_names import groups_of, names_of

VARIABLE: Final = "_PARTISCOPE_COMPLETE"
"""The scripts of ``--install-completion`` set it to the shell."""
WORDS_FILE: Final = Path(__file__).with_name("completion.json")
_KNOWN_CONFIGS: Final = "broker/protocol/known_configs.json"
_BREAKS: Final = ":="
"""Where bash parts words that are one word to us."""
_PLAIN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+"
)

_WORD: Final = re.compile(r"""(?:\\.|"(?:\\.|[^"\\])*"?|'[^']*'?|[^\s\\"']|\\$)+""")


def complete() -> int:
    """Write what may stand at the cursor."""
    shell = os.environ[VARIABLE]
    bash = _bash_words() if shell == "complete_bash" else None
    words = _line_words() if bash is None else bash.words
    found = [each for each in _candidates(words) if each.isprintable()]
    if bash is not None:
        lines = [bash.written(each) for each in found]
    elif shell == "complete_fish":
        if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
            return 0 if found else 1
        lines = found
    else:
        lines = [_for_zsh(found)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _BashWords:
    """The words up to the cursor; the last is completed."""

    words: list[str]
    quote: str
    """That the last word has open; empty: none."""
    kept: int
    """Characters of the last word that stay: bash completes what comes after a colon alone."""

    def written(self, name: str) -> str:
        """A name so that bash takes it for one word."""
        if self.quote == "'":
            return name.replace("'", "'\\''")
        if self.quote:
            return "".join(f"\\{each}" if each in '\\"$`' else each for each in name)
        return "".join(
            each if each in _PLAIN or not each.isascii() else f"\\{each}"
            for each in name[self.kept :]
        )


def _bash_words() -> _BashWords:
    """Words of bash: ``COMP_WORDS`` has one a line."""
    at = int(os.environ["COMP_CWORD"])
    typed = os.environ["COMP_WORDS"].split("\n")[: at + 1]
    typed += [""] * (at + 1 - len(typed))
    joined: list[str] = []
    glues = False
    for word in typed:
        is_break = bool(word) and not word.strip(_BREAKS)
        if joined and (glues or is_break):
            joined[-1] += word
        else:
            joined.append(word)
        glues = is_break
    plain = [_unquoted(word) for word in joined]
    last, quote = plain[-1]
    kept = max(map(last.rfind, _BREAKS)) + 1 if joined[-1] != typed[-1] else 0
    return _BashWords(words=[word for word, _ in plain], quote=quote, kept=kept)


def _unquoted(word: str) -> tuple[str, str]:
    """Meaning of a word as it is typed, and the quote that it leaves open."""
    text, quote, is_escaped = "", "", False
    for each in word:
        if is_escaped:
            text += each if quote != '"' or each in '\\"$`' else f"\\{each}"
            is_escaped = False
        elif each == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            quote, text = ("", text) if each == quote else (quote, text + each)
        elif each in "'\"":
            quote = each
        else:
            text += each
    return text, quote


def _line_words() -> list[str]:
    """Words of zsh and fish: the line as it is typed up to the cursor."""
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    found = list(_WORD.finditer(line))
    words = [_unquoted(each[0])[0] for each in found]
    return words if found and found[-1].end() == len(line) else [*words, ""]


def _for_zsh(found: list[str]) -> str:
    if not found:
        return "_files"
    named = [shlex.quote(each.replace("\\", "\\\\").replace(":", "\\:")) for each in found]
    return f"local -a found; found=({' '.join(named)}); _describe partiscope found"


def _candidates(words: list[str]) -> list[str]:
    """All that may stand for the last word, which is begun."""
    _, *before, begun = ["", *words] if len(words) < 2 else words
    commands = json.loads(WORDS_FILE.read_text(encoding="utf-8"))
    if not before:
        return _begun([*commands, "--help", "--version"], begun)
    grammar = commands.get(before[0])
    if grammar is None:
        return []
    given = before[1:]
    if "commands" in grammar:
        below = grammar["commands"]
        if not given and not begun.startswith("-"):
            return _begun(below, begun)
        name = given.pop(0) if given and not given[0].startswith("-") else "list"
        grammar = below.get(name)
        if grammar is None:
            return []
    return _values(grammar, given, begun)


def _values(grammar: dict[str, Any], given: list[str], begun: str) -> list[str]:
    flags: dict[str, Any] = grammar["flags"]
    flag, count = "", 0
    for word in given:
        if flag:
            flag = ""
        elif word.startswith("-"):
            flag = word if flags.get(word) is not None else ""
        else:
            count += 1
    if flag:
        return _of_kind(flags[flag], given, begun)
    name, is_joined, value = begun.partition("=")
    if is_joined and flags.get(name) is not None:
        return [f"{name}={each}" for each in _of_kind(flags[name], given, value)]
    if begun.startswith("-"):
        return _begun([*flags, "--help"], begun)
    kinds: list[Any] = grammar["arguments"]
    if count >= len(kinds) and not grammar["repeats"]:
        return []
    return _of_kind(kinds[min(count, len(kinds) - 1)], given, begun) if kinds else []


def _of_kind(kind: str | list[str], given: list[str], begun: str) -> list[str]:
    if isinstance(kind, list):
        return _begun(kind, begun)
    if kind.endswith(",…"):
        head, comma, begun = begun.rpartition(",")
        return [f"{head}{comma}{each}" for each in _of_kind(kind[:-2], given, begun)]
    ask = _KINDS.get(kind)
    return [] if ask is None else _begun(ask(_bootstrap(given)), begun)


def _resources(bootstrap: str) -> list[str]:
    known = names_of(bootstrap)
    return [*known.topics, *(f"broker:{each}" for each in known.brokers)]


def _configs(_: str) -> list[str]:
    path = Path(__file__).parents[2] / _KNOWN_CONFIGS
    return [f"{each['name']}=" for each in json.loads(path.read_text(encoding="utf-8"))["topic"]]


_KINDS: Final[dict[str, Callable[[str], Iterable[str]]]] = {
    "topic": lambda bootstrap: names_of(bootstrap).topics,
    "broker": lambda bootstrap: names_of(bootstrap).brokers,
    "group": groups_of,
    "resource": _resources,
    "config": _configs,
}


def _begun(names: Iterable[str], begun: str) -> list[str]:
    """Internal names are for those who begin to type one."""
    return sorted(
        each for each in names
        if each.startswith(begun) and (begun or not each.startswith("__"))
    )  # fmt: skip


def _bootstrap(given: list[str]) -> str:
    """The cluster that the line names, or else that of the data directory."""
    flags = dict(pairwise(given))
    flags |= dict(word.split("=", 1) for word in given if "=" in word)
    named = flags.get("--bootstrap") or flags.get("--cluster")
    named = named or os.environ.get("PARTISCOPE_BOOTSTRAP")
    if named:
        return named
    data = flags.get("--data") or os.environ.get("PARTISCOPE_DATA") or "data"
    try:
        found = json.loads((Path(data) / "installation.json").read_text(encoding="utf-8"))
        watched = found["watched"]
        return str(watched[0]["bootstrap"] if watched else found["bus"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
