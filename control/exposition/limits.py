"""Limits on series, so that a large cluster does not overrun a scraper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SERIES_MAX: Final = 200_000
"""The largest limit that settings take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Patterns are globs, as ``orders-*``; a name must fit one, and none that excludes."""

    topics: Sequence[str] = ("*",)
    exclude_topics: Sequence[str] = ()
    groups: Sequence[str] = ("*",)
    exclude_groups: Sequence[str] = ()
    topics_max: int = 2_000
    partitions_max: int = 5_000
    """Those with the worst status first, then those with the most bytes; the same for topics."""
    groups_max: int = 1_000
    """Those with the worst verdict first, then those with the most lag."""
    group_partitions_max: int = 5_000
    """The same order; as many pairs of group and topic have sums."""


USUAL: Final = Limits()
