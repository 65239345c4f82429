"""When retention deletes what a group has not read. Pure.

Kafka looks at a log every few minutes, and deletes whole segments: those whose newest record is too
old, and those without which the log is still as large as it has to be. So a log's start stands, and
then moves by much. What it has done tells when it looks, and what it keeps.

    when was the last record of the commit's segment written, or when will it be
        -> when is it too old, or when are enough records behind it
        -> when does retention look next
        -> later if the group goes on: only as fast as it falls behind
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

import numpy as np

from spark_metrics.figures.column import Column, column, first_of, greatest, least, where
from spark_metrics.figures.lists import Lists
from spark_metrics.figures.reached import LogTimes
from spark_metrics.schema import STARTS_MAX

CHECKS_MS: Final = (300_000, 60_000)
"""How often retention may look: Kafka's default of ``log.retention.check.interval.ms``, and what
is set mostly. If the log has moved at other distances, it is taken to look all the time."""
_APART: Final = 0.2
"""Share of a check's interval: two moves may be seen so far from a multiple of it, a minute at the
usual one. Each is seen with the next reading or, where that lacks, with the one after it."""
_STEPS: Final = 4
_BEGIN: Final = 0.8
"""Share of the time by rates alone: so much is left to be found step by step."""
LOSS_MS_MAX: Final = 400 * 86_400_000
"""Stands for any time that is longer, and for never."""
_OLD_ENOUGH: Final = 0.95
"""Share of the retention: a first record of this age may have become the first because of its
age."""


class Kept(NamedTuple):
    """Retention of each log, as far as it is known."""

    looked_ms: Column
    """When it was last seen to delete; unknown until then."""
    check_ms: Column
    """How often it looks; 0: all the time."""
    step: Column
    """Records that it deletes at once, at least."""
    records: Column
    """Records that stay however much is written; unknown where size deletes nothing."""


def may_be_by_age(age_ms: Column, retention_ms: Column) -> Column:
    """Whether a log may have come to begin at a record because those before were too old."""
    is_old = (age_ms >= retention_ms * _OLD_ENOUGH) | age_ms.is_unknown
    return ((retention_ms > 0) & is_old).is_sure


def kept(
    times: Lists,
    offsets: Lists,
    ends: Lists,
    *,
    start: Column,
    end: Column,
    size_bytes: Column,
    retention_bytes: Column,
) -> Kept:
    """``times``, ``offsets``, ``ends``: starts of the log, newest first, as ``schema.START``.

    Where the source does not tell what size keeps, the moves do: of what size deletes, the log is
    about as long each time, between two lengths that differ by a segment. Where it is not, or has
    become longer by far, something else has moved its start.
    """
    steps = [offsets.item(it) - offsets.item(it + 1) for it in range(STARTS_MAX - 1)]
    is_move = [it.is_known for it in steps]
    waits = [
        (times.item(it) - times.item(it + 1)).where(is_move[it + 1]) for it in range(STARTS_MAX - 2)
    ]
    lengths = [
        (ends.item(it) - offsets.item(it)).where(is_move[it]) for it in range(STARTS_MAX - 1)
    ]
    shortest, longest = least(*lengths), greatest(*lengths)
    step, step_max = least(*steps), greatest(*steps)
    floor = greatest(longest - step, 0)
    is_alike = (floor <= shortest) & lengths[0].is_known & lengths[1].is_known
    is_by_size = is_alike & (end - start <= longest + step_max * 2) & retention_bytes.is_unknown
    by_setting = ((end - start) / size_bytes * retention_bytes).where(retention_bytes >= 0)
    return Kept(
        looked_ms=times.item(0).where(is_move[0]),
        check_ms=_check_ms(waits).where(is_move[0]),
        step=step,
        records=by_setting.or_else(((floor + shortest) / 2.0).where(is_by_size)).whole(),
    )


def _check_ms(waits: Sequence[Column]) -> Column:
    """The longest interval that divides all waits, nearly."""

    def apart(wait: Column, check_ms: int) -> Column:
        looks = greatest((wait / check_ms + 0.5).whole(), 1)
        rest = wait - looks * check_ms
        return (greatest(rest, -rest) > check_ms * _APART).is_sure

    fits = [~reduce(or_, (apart(it, check_ms) for it in waits)) for check_ms in CHECKS_MS]
    return first_of(*zip(fits, CHECKS_MS, strict=True), otherwise=0)


class Unread(NamedTuple):
    """The records of a log that a group has still to read."""

    offset: Column
    """The first record."""
    start: Column
    """Where the log begins, …"""
    end: Column
    """… and ends."""
    end_read_ms: Column
    read_per_ms: Column
    """Records that the group reads in a millisecond; 0 where it stands."""
    shrinks_by: Column
    """The share of the time left by which it shrinks as time goes by: 1 for a group that stands."""


def time_to_loss(
    unread: Unread, retention_ms: Column, *, held: Kept, segments: Lists, log: LogTimes
) -> Column:
    """Milliseconds until the first record is deleted unread; unknown where nothing deletes.

    A segment is due later than the one before, and the group reads on until then. So the time at
    which the segment goes that it reads now is too early: the one that it reads then comes next,
    and so on. What each record's own time tells is where to begin.
    """
    now_ms = unread.end_read_ms
    since_ms = now_ms - held.looked_ms

    def due_ms(last: Column) -> Column:
        by_age = (_expected_ms(last - 1, unread, log) + retention_ms).where(retention_ms > 0)
        return least(by_age, _expected_ms(last + held.records, unread, log)) - now_ms

    def deleted_ms(at_ms: Column) -> Column:
        read_on = unread.offset + (at_ms * unread.read_per_ms).whole()
        due = due_ms(_segment_end(read_on, unread, held, segments))
        due = greatest(due, 1).where(due.is_known)
        looks = ((due + since_ms) / held.check_ms).whole() + 1
        return (looks * held.check_ms - since_ms).or_else(due)

    alone = due_ms(unread.offset + 1)
    at_ms = (greatest(alone, 0) / unread.shrinks_by * _BEGIN).whole()
    for _ in range(_STEPS):
        at_ms = deleted_ms(least(at_ms, LOSS_MS_MAX))
    return least(at_ms, LOSS_MS_MAX).where(alone.is_known)


def _segment_end(offset: Column, unread: Unread, held: Kept, segments: Lists) -> Column:
    """Where the segment of a record ends, or will end.

    Segments that are not told are taken to be as long as the told ones, or as what is deleted.
    """
    place = segments.leading(np.less_equal, offset)
    base, following = segments.item(np.where(place > 0, place - 1, -1)), segments.item(place)
    before = segments.item(place - 2)
    active = greatest(base + (base - before), unread.end)
    by_segments = following.or_else(active).where(column(place > 0))
    first, newest = segments.item(np.zeros_like(place)), segments.item(segments.counts - 1)
    step = ((newest - first) / column(segments.counts - 1)).or_else(held.step)
    nth = ((offset - unread.start) / step).whole() + 1
    guessed = least(unread.start + (step * nth).whole(), first).where(nth.is_known)
    return greatest(by_segments.or_else(guessed, offset + 1), offset + 1)


def _expected_ms(offset: Column, unread: Unread, log: LogTimes) -> Column:
    """When the log ended there, or will: so many records take as long as the last ones did."""
    now_ms, end = unread.end_read_ms, unread.end
    to_come = greatest(offset - end, 0)
    there = log.reached(end - to_come).ms
    oldest_ms, oldest = (it.item(it.counts - 1) for it in (log.times, log.offsets))
    slow_ms = ((now_ms - oldest_ms) / (end - oldest) * to_come).whole()
    took_ms = (now_ms - there).or_else(slow_ms)
    return first_of(
        (to_come > 0, now_ms + least(took_ms, LOSS_MS_MAX).where(took_ms.is_known)),
        otherwise=where(offset >= end, now_ms, log.reached(offset).ms),
    )
