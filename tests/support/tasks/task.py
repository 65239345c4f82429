"""A task of an operator: where it begins, its steps on both faces, and what is seen at its end.

A step is a click, a key or chord (``g t``), or a filled field together with what leads to the field
and the Enter that ends it. Texts may name ``{face}``
and other facts: each face changes things of its own.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

STEPS_MAX: Final = 4


class Kind(StrEnum):
    """What a task is about; a section of the document each."""

    READING = "reading"
    FINDING = "finding"
    CHANGING = "changing"


@dataclass(frozen=True, slots=True)
class Click:
    """What is clicked, as the operator reads it; ``at`` is its selector where words do not do."""

    words: str
    at: str = ""

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Keys:
    """One key, or a chord whose keys follow one another."""

    keys: str

    def __str__(self) -> str:
        return f"`{self.keys}`"


@dataclass(frozen=True, slots=True)
class Fill:
    """A field and its text; ``key``, then ``tabs``, lead to it, Enter ends it if ``enters``."""

    label: str
    text: str
    key: str = ""
    tabs: int = 0
    enters: bool = True
    at: str = ""
    """Its selector on the page, where its label does not do."""

    def __str__(self) -> str:
        key = f"`{self.key}` " if self.key else ""
        return f"{key}{self.label} = {self.text}"


Step = Click | Keys | Fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``terminal_seen`` where the terminal says it in other words.

    Words may name facts of the cluster, such as ``{controller}``. ``=word`` is a whole
    word, and ``one|other`` is either of them.
    """

    asks: str
    kind: Kind
    start: str = "overview"
    page: tuple[Step, ...] = ()
    terminal: tuple[Step, ...] = ()
    seen: tuple[str, ...]
    terminal_seen: tuple[str, ...] | None = None
    unseen: tuple[str, ...] = ()
    """What stood there before."""
    first: str = ""
    """Name in the first row of the table: it is sorted."""
    leaves: str = ""
    """The key that brings the terminal back to where the next task may begin."""

    @property
    def seen_in_terminal(self) -> tuple[str, ...]:
        """What the terminal says at the end."""
        return self.seen if self.terminal_seen is None else self.terminal_seen
