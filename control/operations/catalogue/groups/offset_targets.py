"""Targets for offsets (``earliest``, ``+10``, ``10m`` …), parsed and resolved."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import OffsetAt
from control.kafka.records.log_bounds import LogExtents
from control.model.ids import TopicPartition, partition_ranges
from control.model.moments import MOMENT_FORMS, TimeError, parse_moment
from control.model.offset_range import LogRange, outside_words, partition_names
from control.operations.errors import InvalidInputError

TARGET_HELP: Final = f"earliest, latest, an offset, +N, -N, or a time: {MOMENT_FORMS}"
_NUMBER: Final = re.compile("[+-]?[0-9]{1,19}")


class TargetKind(Enum):
    """How a target is meant."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class OffsetTarget:
    """``value``: the offset, the shift in records, or milliseconds since the epoch."""

    kind: TargetKind
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBounds:
    """Offsets of one log."""

    first: int
    end: int
    """The high watermark."""
    at_time: int | None = None
    """Of the first record at or after the target's time; None: every record is older."""

    def resolved(self, target: OffsetTarget, committed: int | None = None) -> int | None:
        """The offset that a target means, inside the log; None: a shift of no commit.

        ``require_inside`` refuses other offsets, and ``moved_notes`` tells of shifts and times.
        """
        wanted: int | None
        match target.kind:
            case TargetKind.EARLIEST:
                wanted = self.first
            case TargetKind.LATEST:
                wanted = self.end
            case TargetKind.OFFSET:
                wanted = target.value
            case TargetKind.SHIFT:
                wanted = None if committed is None else committed + target.value
            case TargetKind.TIME:
                wanted = self.end if self.at_time is None else self.at_time
        return None if wanted is None else min(max(wanted, self.first), self.end)


def parse_target(text: str) -> OffsetTarget:
    """Reads a target of a form's field or a flag. A number is an offset; milliseconds follow an
    ``@``.

    :raises TimeError: it is no target.
    """
    words = text.strip()
    if words in (TargetKind.EARLIEST.value, TargetKind.LATEST.value):
        return OffsetTarget(TargetKind(words))
    if _NUMBER.fullmatch(words):
        is_shift = words[0] in "+-"
        return OffsetTarget(TargetKind.SHIFT if is_shift else TargetKind.OFFSET, int(words))
    try:
        at_ms = parse_moment(words, now_ms=_now_ms())
    except TimeError as error:
        raise TimeError(f"{text!r} is none of {TARGET_HELP}") from error
    return OffsetTarget(TargetKind.TIME, at_ms)


def target_problem(text: str) -> str | None:
    """Why a text is no target, for a form; None: it is one."""
    try:
        parse_target(text)
    except TimeError as error:
        return str(error)
    return None


def require_inside(
    field: str, target: OffsetTarget, bounds: Mapping[TopicPartition, LogBounds]
) -> None:
    """Refuse an offset that one of the logs does not have.

    :raises InvalidInputError: with ``field``, the partitions and their ends.
    """
    if target.kind is not TargetKind.OFFSET:
        return
    logs = {key: LogRange(log.first, log.end) for key, log in bounds.items()}
    words = outside_words(target.value, logs, now_ms=_now_ms(), time_form="@{}")
    if words is not None:
        raise InvalidInputError({field: words})


def moved_notes(
    target: OffsetTarget,
    bounds: Mapping[TopicPartition, LogBounds],
    committed: Mapping[TopicPartition, int],
) -> tuple[str, ...]:
    """Lines about the partitions where a shift or a time leads out of the log."""
    beyond, before = [], []
    for key, log in bounds.items():
        if target.kind is TargetKind.SHIFT and key in committed:
            wanted = committed[key] + target.value
            beyond += [key] if wanted > log.end else []
            before += [key] if wanted < log.first else []
        elif target.kind is TargetKind.TIME and log.end > log.first:
            beyond += [key] if log.at_time is None else []
            before += [key] if log.at_time == log.first else []
    is_time = target.kind is TargetKind.TIME
    why_end = "every record is older" if is_time else "the shift leads beyond the end"
    why_first = "no record is older" if is_time else "the shift leads before the first record"
    told = ((beyond, f"{why_end}, so it means the end"),
            (before, f"{why_first}, so it means the first"))  # fmt: skip
    return tuple(f"{words}: {partition_names(keys)}" for keys, words in told if keys)


async def read_bounds(
    admin: KafkaAdmin, partitions: Iterable[TopicPartition], target: OffsetTarget
) -> Mapping[TopicPartition, LogBounds]:
    """Bounds of logs, with the offset of the target's time where it is one.

    :raises InvalidInputError: some partitions do not tell; with those that do.
    :raises KafkaPortError: none of them does.
    """
    logs = LogExtents(admin)
    extents, unread = await logs.tolerant(partitions)
    timed: Mapping[TopicPartition, OffsetAt] = {}
    if target.kind is TargetKind.TIME:
        timed, lacking = await logs.list_offsets(extents, target.value)
        unread += lacking
    if unread:
        first, told = unread[0], extents.keys() - {it.partition for it in unread}
        words = f"{partition_names([it.partition for it in unread])}: {first.reason}"
        raise InvalidInputError(
            {"partitions": f"{words}; the others can be named: {partition_ranges(told)}"}
        )
    return {
        key: LogBounds(
            first=log.first,
            end=log.end,
            at_time=timed[key].offset if key in timed and timed[key].offset >= 0 else None,
        )
        for key, log in extents.items()
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
