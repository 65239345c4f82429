"""Moves that do not get on: what is left to copy has not shrunk for a while, and why. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from control.model.ids import TopicPartition
from control.model.units import byte_rate_text, bytes_text

STALLED_AFTER_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standstill:
    """How long nothing was gained, and what came and went meanwhile."""

    for_s: float
    written: int
    """Bytes that producers added to what must be copied."""
    copied: int
    is_complete: bool
    """Every byte is there, but the move has not ended: not all of its target is in sync."""

    def explain(
        self,
        throttle: int | None,
        *,
        theirs: Mapping[int, int] | None = None,
        lagging: Sequence[int] = (),
    ) -> str:
        """In a sentence, with what to do. `theirs`: lower rates that somebody else has set, by
        broker; `lagging`: brokers whose replicas stay and are not in sync, which the move waits for
        as well."""
        if self.is_complete:
            if lagging:
                where = f"the replica that stays on broker {lagging[0]} is not in sync: see its log"
            else:
                where = "see the target's log"
            return f"for {self.for_s:.0f} s nothing is left to copy: {where}"
        limit = "without a throttle" if throttle is None else f"at {byte_rate_text(throttle)}"
        remedy, otherwise = "raise the throttle", "raise the throttle if other moves use it up"
        if theirs:
            slowest = min(theirs, key=lambda broker: theirs[broker])
            rate = byte_rate_text(theirs[slowest])
            limit = f"at {rate}, as somebody else throttles broker {slowest}"
            remedy = otherwise = "wait for that move, or remove its throttle if none runs"
        if self.copied <= 0:
            ways = f"see the target's log, or {otherwise}"
            return f"no byte arrived for {self.for_s:.0f} s {limit}: {ways}"
        return (
            f"in {self.for_s:.0f} s producers wrote {bytes_text(self.written)} and the copy got "
            f"{bytes_text(self.copied)} {limit}: {remedy}"
        )


@dataclass(slots=True, kw_only=True)
class _Mark:
    since_s: float
    size: int
    copied: int


class StallWatch:
    """Remembers for each move when least was left."""

    def __init__(self) -> None:
        self._best: dict[TopicPartition, _Mark] = {}

    def look(
        self, key: TopicPartition, *, size: int, copied: int, now_s: float
    ) -> Standstill | None:
        """A standstill, once what is left has not shrunk for STALLED_AFTER_S."""
        best = self._best.get(key)
        if best is None or size - copied < best.size - best.copied:
            self._best[key] = _Mark(since_s=now_s, size=size, copied=copied)
            return None
        still_s = now_s - best.since_s
        if still_s < STALLED_AFTER_S:
            return None
        return Standstill(
            for_s=still_s,
            written=size - best.size,
            copied=copied - best.copied,
            is_complete=copied >= size,
        )

    def forget(self, key: TopicPartition) -> None:
        """It no longer moves."""
        self._best.pop(key, None)
