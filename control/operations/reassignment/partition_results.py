"""Results of each partition of an operation that has ended. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import Final

from control.model.ids import TopicPartition
from control.operations.reassignment.placements import Placements
from planner.proposal import PartitionChange


class Fate(StrEnum):
    """Result of one partition, in words for people."""

    MOVED = "moved"
    WENT_BACK = "went back"
    NEVER_BEGAN = "never began"
    NOT_MOVED = "not moved"
    """For a reason of its own, which the operation tells (``refused``)."""
    DELETED = "deleted"


_LETTERS: Final = {
    Fate.MOVED: "m",
    Fate.WENT_BACK: "b",
    Fate.NEVER_BEGAN: "n",
    Fate.NOT_MOVED: "r",
    Fate.DELETED: "d",
}
_FATES: Final = {letter: fate for fate, letter in _LETTERS.items()}


def fates_of(
    changes: Iterable[PartitionChange],
    places: Placements,
    *,
    gone: Collection[TopicPartition] = (),
    refused: Collection[TopicPartition] = (),
    went_back: Collection[TopicPartition] = (),
) -> tuple[Fate, ...]:
    """Result of each change in its order; a partition at its target counts as moved, whatever was
    told."""
    return tuple(
        Fate.DELETED if change.key in gone
        else Fate.MOVED if places.is_there(change)
        else Fate.NOT_MOVED if change.key in refused
        else Fate.WENT_BACK if change.key in went_back
        else Fate.NEVER_BEGAN
        for change in changes
    )  # fmt: skip


def fate_counts(fates: Sequence[Fate]) -> dict[Fate, int]:
    """How many of each that occurs, in the order above."""
    counts = Counter(fates)
    return {fate: counts[fate] for fate in Fate if counts[fate]}


def pack_fates(fates: Sequence[Fate]) -> str:
    """A letter each, as an event carries them."""
    return "".join(_LETTERS[fate] for fate in fates)


def unpack_fates(letters: str) -> tuple[Fate, ...]:
    """The inverse of pack_fates.

    :raises ValueError: a letter of a newer release.
    """
    if not set(letters) <= _FATES.keys():
        raise ValueError(f"no fates: {letters[:20]!r}")
    return tuple(_FATES[letter] for letter in letters)
