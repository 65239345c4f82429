"""Targets for offsets (``earliest``, ``+10``, ``10m`` …), parsed and resolved."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import OffsetSpec
from control.model.ids import TopicPartition
from control.model.moments import MOMENT_FORMS, TimeError, parse_moment

TARGET_HELP: Final = f"earliest, latest, an offset, +N, -N, or a time: {MOMENT_FORMS}"
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}")


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
        """The offset that a target means, inside the log; None: a shift of no commit."""
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
        at_ms = parse_moment(words, now_ms=time.time_ns() // 1_000_000)
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


async def read_bounds(
    admin: KafkaAdmin, partitions: Iterable[TopicPartition], target: OffsetTarget
) -> Mapping[TopicPartition, LogBounds]:
    """Bounds of logs, with the offset of the target's time where it is one.

    :raises RefusedError: a partition is unknown or has no leader.
    """
    keys = list(partitions)
    first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
    end = await admin.offsets.list_offsets(keys)
    timed: Mapping[TopicPartition, int] = {}
    if target.kind is TargetKind.TIME:
        found = await admin.offsets.list_offsets(keys, target.value)
        timed = {key: each.offset for key, each in found.items() if each.offset >= 0}
    return {
        key: LogBounds(first=first[key].offset, end=end[key].offset, at_time=timed.get(key))
        for key in keys
    }
