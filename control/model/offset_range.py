"""Offsets against the logs that they are meant for: one outside is refused, never moved inside."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from control.model.ids import TopicPartition
from control.model.moments import iso_text, time_meant

NAMED_MAX: Final = 5
"""Partitions that one line names; the rest is counted."""


class LogRange(NamedTuple):
    """Offsets that a log begins and ends with; the end is that of the next record."""

    first: int
    end: int


def outside_words(
    offset: int, logs: Mapping[TopicPartition, LogRange], *, now_ms: int, time_form: str
) -> str | None:
    """Why an offset cannot be a place in each of these logs; None: it can.

    ``time_form`` says how a time is written there (``@{}``, ``--since {}``), for a number that
    looks like one.
    """
    beyond = {key: log for key, log in logs.items() if offset > log.end}
    before = {key: log for key, log in logs.items() if offset < log.first}
    if not beyond and not before:
        return None
    where = [f"beyond the end of {_ranges(beyond)}"] if beyond else []
    where += [f"before the first record of {_ranges(before)}"] if before else []
    at_ms = time_meant(offset, now_ms=now_ms, units=("s", "ms")) if beyond else None
    if at_ms is None:
        hint = "write an offset that each of the chosen partitions has, or leave these out"
    else:
        hint = f"if the time {iso_text(at_ms)} is meant, write {time_form.format(offset)}"
    return f"offset {offset} is {' and '.join(where)}; {hint}"


def partition_names(keys: Collection[TopicPartition]) -> str:
    """``orders-0, orders-1 and 3 more``."""
    return _listed(map(str, sorted(keys)), len(keys))


def _ranges(logs: Mapping[TopicPartition, LogRange]) -> str:
    words = (f"{key} ({log.first} to {log.end})" for key, log in sorted(logs.items()))
    return _listed(words, len(logs))


def _listed(words: Iterable[str], count: int) -> str:
    named = [word for word, _ in zip(words, range(NAMED_MAX), strict=False)]
    more = f" and {count - NAMED_MAX:,} more" if count > NAMED_MAX else ""
    return f"{', '.join(named)}{more}"
