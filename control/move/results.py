"""Results of an operation that has ended: of each partition, and of its estimates of time."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from control.model.ids import TopicPartition
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
    is_there: Callable[[PartitionChange], bool],
    *,
    gone: Collection[TopicPartition] = (),
    refused: Collection[TopicPartition] = (),
    went_back: Collection[TopicPartition] = (),
) -> tuple[Fate, ...]:
    """Result of each change in its order; a partition at its target (`is_there`) counts as moved,
    whatever was told."""
    return tuple(
        Fate.DELETED if change.key in gone
        else Fate.MOVED if is_there(change)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Misses:
    """How far a move that has ended was from its estimated intervals."""

    foreseen: float | None
    """Before it began; null where nothing was foreseen, or an operator changed its course."""
    left: tuple[float, ...]
    """Of the time left, while it ran."""
    is_adaptive: bool
    """Whether the throttle was the automatic one, of which less can be foreseen."""

    def document(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "Misses":
        """The inverse of document()."""
        return cls(
            foreseen=document["foreseen"],
            left=tuple(document["left"]),
            is_adaptive=document["is_adaptive"],
        )
