"""Commands that the documents tell to type, as they stand there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partiscope.cli.commands import COMMANDS
from tests.support.node_cluster import ROOT

DOCUMENTS: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
_TYPED: Final = re.compile(r"^(?:\.venv/bin/)?partiscope ", re.MULTILINE)
_PIPED: Final = re.compile(r"\| (partiscope .*)")
_INLINE: Final = re.compile(r"`(partiscope [^`]+)`")
_INLINE_SHELL: Final = re.compile(r"`((?:partiscope|make|python -m|uv|docker|ssh) [^`]+)`")
_NOT_TYPED: Final = re.compile(r"…|NAME\b|FILE\b|\bID\b|\.\.\.")
_SHELL: Final = re.compile(
    r"^(?:(?:\.venv/bin/)?(?:partiscope|python)|make|git|docker|kafka-[\w-]+\.sh|tar|pkill|printf|"
    r"tail|export|alias|source|uv|\$\w+/\S+) "
)
"""Lines of blocks that begin so are typed into a shell; others are output, pictures, settings."""
_START: Final = re.compile(
    r"(?:\.venv/bin/)?partiscope "
    rf"(?:{'|'.join(it.name for it in COMMANDS if it.is_service)})(?: |$)"
    r"|(?:git pull && )?make up\b"
)


def documented_commands() -> Iterator[str]:
    """Commands of the program: lines of code blocks, and commands within sentences."""
    for document in DOCUMENTS:
        lines = block_lines(document)
        piped = [found[1] for found in map(_PIPED.search, lines) if found]
        for typed in (*filter(_TYPED.match, lines), *piped, *_in_sentences(document, _INLINE)):
            yield typed.removeprefix(".venv/bin/")


def block_lines(document: Path) -> list[str]:
    """Lines of a document's shell blocks, with their continuations."""
    return [line for lines in shell_blocks(document) for line in lines]


def shell_blocks(document: Path) -> Iterator[list[str]]:
    """The lines to type of each block that has some."""
    for block in _blocks(document):
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        if typed := [line.strip() for line in lines if _SHELL.match(line.strip())]:
            yield typed


def documented_shell_lines(document: Path) -> list[list[str]]:
    """All that a document tells to type: by block, then each command within sentences."""
    within = dict.fromkeys(_in_sentences(document, _INLINE_SHELL))
    return [*shell_blocks(document), *([line] for line in within)]


def is_start(line: str) -> bool:
    """Whether the line starts what runs until it is ended."""
    return bool(_START.match(line))


def _blocks(document: Path) -> list[str]:
    return document.read_text().split("```")[1::2]


def words_of(command: str) -> tuple[str, ...]:
    """The words of a command after ``partiscope``, without comment, pipe and redirection."""
    return tuple(shlex.split(re.split(r" [|>] ", command)[0], comments=True)[1:])


def _in_sentences(document: Path, pattern: re.Pattern[str]) -> list[str]:
    sentences = re.sub(r"\s+", " ", " ".join(document.read_text().split("```")[0::2]))
    return [it for it in pattern.findall(sentences) if not _NOT_TYPED.search(it)]
