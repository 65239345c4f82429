"""Names of things in a cluster. Plain values with a type each, so that they are not mixed up."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple, NewType
from urllib.parse import quote

ClusterId = NewType("ClusterId", str)
BrokerId = NewType("BrokerId", int)
GroupId = NewType("GroupId", str)

TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
NO_LEADER: Final = BrokerId(-1)
_PARTITIONS: Final = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")
_RANGE_MAX: Final = 1_000_000
_LISTED_MAX: Final = 40


class TopicPartition(NamedTuple):
    """One partition of a topic; prints as Kafka's own logs name it (``orders-7``)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def path_segment(name: str) -> str:
    """A name of any characters as one segment of a view's path: groups may be called ``a/b``."""
    return quote(name, safe="")


def no_partition_words(topic: str, partition: object, count: int) -> str:
    """``orders has no partition 99 (0–11)``; ``count`` is how many it has."""
    numbers = "0" if count == 1 else f"0–{count - 1}"
    return f"{topic} has no partition {partition} ({numbers})"


def names_meant(name: str, known: Iterable[str], *, most: int = 3) -> str:
    """``did you mean orders or order?``: the ``known`` names that are most like it; empty: none
    is."""
    near = get_close_matches(name, known, n=most)
    listed = " or ".join(filter(None, (", ".join(near[:-1]), *near[-1:])))
    return f"did you mean {listed}?" if near else ""


def other_names(
    name: str, known: Iterable[str], *, synonyms: Mapping[str, str] = MappingProxyType({})
) -> str:
    """``did you mean orders? There are audit, orders``: after a name that is not ``known``;
    ``synonyms`` lead to names that are."""
    names = list(known)
    near = get_close_matches(name, [*names, *synonyms], n=1)
    meant = f"did you mean {synonyms.get(near[0], near[0])}? There are " if near else "there are "
    listed = ", ".join(names[:_LISTED_MAX])
    more = f" and {len(names) - _LISTED_MAX:,} more" if len(names) > _LISTED_MAX else ""
    return f"{meant}{listed}{more}" if names else "there are none"


def partition_numbers(text: str) -> tuple[int, ...]:
    """Partitions as people write them, ``3`` or ``0-3,7``, in order; empty: none is named.

    :raises ValueError: it is nothing like that, in words.
    """
    found: set[int] = set()
    for part in text.split(",") if text.strip() else ():
        told = _PARTITIONS.fullmatch(part)
        if told is None:
            raise ValueError(f"{part.strip()!r} is no partition; write 3 or 0-3,7")
        first, last = int(told[1]), int(told[2] or told[1])
        if last < first or last - first > _RANGE_MAX:
            raise ValueError(f"{part.strip()!r} is no range of partitions")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def partition_ranges(keys: Iterable[TopicPartition]) -> str:
    """``orders 0-3, 7; payments 1``."""
    topics = groupby(sorted(keys), key=lambda it: it.topic)
    return "; ".join(f"{topic} {_ranges([it.partition for it in own])}" for topic, own in topics)


def _ranges(numbers: Sequence[int]) -> str:
    runs = groupby(enumerate(numbers), key=lambda it: it[1] - it[0])
    spans = ([number for _, number in run] for _, run in runs)
    return ", ".join(f"{it[0]}-{it[-1]}" if len(it) > 1 else f"{it[0]}" for it in spans)
