"""Commands that the documents tell to type, as they stand there."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

from tests.support.node_cluster import ROOT

DOCUMENTS: Final = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_TYPED: Final = re.compile(r"^(?:\.venv/bin/)?partiscope ", re.MULTILINE)
_PIPED: Final = re.compile(r"\| (partiscope .*)")
_INLINE: Final = re.compile(r"`(partiscope [^`]+)`")
_NOT_TYPED: Final = re.compile(r"…|NAME\b|FILE\b|\bID\b|\.\.\.")


def documented_commands() -> Iterator[str]:
    """Lines of code blocks, with their continuations, and commands within sentences."""
    for document in DOCUMENTS:
        blocks = document.read_text().split("```")
        joined = "\n".join(blocks[1::2]).replace("\\\n", " ")
        lines = [line.strip() for line in joined.splitlines()]
        piped = [found[1] for found in map(_PIPED.search, lines) if found]
        sentences = re.sub(r"\s+", " ", " ".join(blocks[0::2]))
        for typed in (*filter(_TYPED.match, lines), *piped, *_INLINE.findall(sentences)):
            if not _NOT_TYPED.search(typed):
                yield typed.removeprefix(".venv/bin/")


def words_of(command: str) -> tuple[str, ...]:
    """The words of a command after ``partiscope``, without comment, pipe and redirection."""
    return tuple(shlex.split(re.split(r" [|>] ", command)[0], comments=True)[1:])
