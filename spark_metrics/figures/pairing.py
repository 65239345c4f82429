"""Pairs commits with ends of logs: the earliest end offset read at or after the commit. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spark_metrics.figures.column import Column, column, first_of
from spark_metrics.figures.lists import Lists


class Reading(NamedTuple):
    """A reading of a commit: when it was read, where it stands, when it was made."""

    ms: Column
    offset: Column
    commit_ms: Column


class Paired(NamedTuple):
    """The readings of commits after a batch."""

    shown: Reading
    """The newest paired reading; the newest of all while the commit was never paired."""
    end_ms: Column
    end_offset: Column
    is_fresh: Column
    """Whether a reading was paired in this batch."""
    waits: tuple[Reading, Reading]
    """Readings that wait for an end offset, the older one first."""


def pair(
    newest: Reading,
    waited: tuple[Reading, Reading],
    shown: Reading,
    *,
    brings: Column,
    was_paired: Column,
    ends: tuple[Lists, Lists],
) -> Paired:
    """``ends``: when the log's end was read, newest first, and the offsets then.

    The newest reading that an end follows is paired. Newer ones wait on: at most two, the oldest
    and the newest of them.
    """
    wait_a, wait_b = waited
    times, offsets = ends
    after = [
        times.leading(np.greater_equal, ms)
        for ms in (newest.ms.where(brings), wait_b.ms, wait_a.ms)
    ]
    is_newest, is_b, is_a = (count > 0 for count in after)
    place = np.select([is_newest, is_b], after[:2], after[2]) - 1
    is_fresh = column(place >= 0)
    a_waits = wait_a.ms.is_known & ~is_fresh
    b_waits = wait_b.ms.is_known & ~column(is_newest | is_b)
    newest_waits = brings.is_sure & ~column(is_newest)
    first = [(a_waits, wait_a), (b_waits, wait_b), (newest_waits, newest)]
    second = [
        ((a_waits | b_waits) & newest_waits, newest),
        (a_waits & b_waits, wait_b),
    ]
    shows = [
        (column(is_newest) | (~is_fresh & ~was_paired), newest),
        (column(is_b), wait_b),
        (column(is_a), wait_a),
    ]
    return Paired(
        shown=_chosen(shows, otherwise=shown),
        end_ms=times.item(place),
        end_offset=offsets.item(place),
        is_fresh=is_fresh,
        waits=(_chosen(first), _chosen(second)),
    )


def earliest_after(read_ms: Column, times: Lists, values: Lists) -> Column:
    """The value of the earliest of the log's readings that was read at or after this time."""
    place: Any = times.leading(np.greater_equal, read_ms) - 1
    return values.item(place)


def _chosen(cases: Sequence[tuple[Column, Reading]], otherwise: Reading | None = None) -> Reading:
    """The reading of the first case that holds, field by field."""
    return Reading(
        *(
            first_of(
                *((condition, reading[field]) for condition, reading in cases),
                otherwise=None if otherwise is None else otherwise[field],
            )
            for field in range(len(Reading._fields))
        )
    )
