"""Words for the state of a run in one line. Pure."""

from collections.abc import Mapping
from typing import Final

from control.model.ids import TopicPartition
from control.model.units import counted

REFUSED_NAMES_MAX: Final = 5
PAUSED_WORDS: Final = "paused: partitions in flight arrive, no other begins"


def first_words(waves: int, partitions: int, *, there: int, begun: str) -> str:
    """As it begins; `begun`: over which time, where that is worth a word."""
    words = f"{counted(partitions, 'partition')} in {counted(waves, 'wave')}"
    words = f"{words}; {there} already there" if there else words
    return f"{words}; {begun}" if begun else words


def reasons(refused: Mapping[TopicPartition, str]) -> str:
    """The first of them, and how many more there are."""
    named = [f"{key}: {why}" for key, why in list(refused.items())[:REFUSED_NAMES_MAX]]
    more = len(refused) - len(named)
    return "; ".join([*named, f"and {more:,} more"] if more else named)
