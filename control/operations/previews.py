"""Previews that wait for their confirmation, and what came of those that were confirmed."""

import asyncio
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from control.operations.catalogue.forms import OperationForm
from control.operations.catalogue.operation import Done, Effect, Operation
from control.operations.errors import PreviewGoneError

PREVIEWS_MAX: Final = 100
CHANGED: Final = "The preview has changed since: read it, then type the word."
CHANGES_MAX: Final = 500_000
"""Of all kept previews together, each some 100 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """An operation that may be confirmed."""

    effect: Effect[Operation]
    word: str
    """What must be typed to confirm it; empty: nothing."""
    made_s: float
    """Of the monotonic clock."""
    name: str
    """By which ``OperationSession.kept_preview`` finds it."""
    by: str = ""
    """Name of the login that alone may confirm it; empty: no users are declared."""

    @property
    def form(self) -> OperationForm:
        """Form of its operation."""
        return self.effect.command.form

    def keeps(self, typed: str, before: "Previewed | None") -> tuple[str, str]:
        """The word typed under the preview ``before``, as far as it holds for this one, and a line
        that says why it does not."""
        if not typed or before is None:
            return "", ""
        return (typed, "") if self.repeats(before) else ("", CHANGED)

    def repeats(self, before: "Previewed | None") -> bool:
        """Whether an operator read the same under the preview ``before``."""
        return before is not None and self._told == before._told

    @property
    def _told(self) -> tuple[Hashable, ...]:
        """Everything an operator reads before the word is typed; figures of checks may move."""
        effect, review = self.effect, self.effect.review
        return (
            self.word,
            effect.command.what,
            effect.changes,
            effect.notes,
            effect.refusal is None,
            review and review.proposal.changes,
            tuple((check.name, check.verdict) for check in effect.doubts),
        )

    @property
    def is_needed(self) -> bool:
        """Whether there is something to change."""
        return bool(self.effect.changes)


@dataclass(slots=True, kw_only=True)
class KeptPreview:
    """One preview and what came of it."""

    previewed: Previewed
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Whoever performs it holds this: a button clicked twice changes the cluster once."""
    done: Done | None = None


class Previews:
    """The newest previews by name: at most ``PREVIEWS_MAX``, with ``CHANGES_MAX`` changes.

    The login that keeps most makes room, so a program in a loop takes no person's preview.
    """

    def __init__(self) -> None:
        self._kept: dict[str, KeptPreview] = {}

    def keep(self, previewed: Previewed) -> None:
        """Older ones make room for it."""
        self._kept[previewed.name] = KeptPreview(previewed=previewed)
        while len(self._kept) > 1 and (loads := self._loads_beyond()):
            others = [it.previewed for it in self._kept.values()][:-1]
            del self._kept[max(others, key=lambda it: loads[it.by]).name]

    def _loads_beyond(self) -> Counter[str]:
        """Previews by login where there are too many, else changes; empty: nothing is beyond."""
        counts, sizes = Counter[str](), Counter[str]()
        for kept in self._kept.values():
            counts[kept.previewed.by] += 1
            sizes[kept.previewed.by] += kept.previewed.effect.size
        if counts.total() > PREVIEWS_MAX:
            return counts
        return sizes if sizes.total() > CHANGES_MAX else Counter()

    def named(self, name: str) -> Previewed:
        """:raises PreviewGoneError: it is kept no longer."""
        if name not in self._kept:
            raise PreviewGoneError
        return self._kept[name].previewed

    def entry(self, previewed: Previewed) -> KeptPreview:
        """With what came of it so far; a preview that is not kept any more begins anew."""
        return self._kept.get(previewed.name) or KeptPreview(previewed=previewed)
