"""Decides when a run submits which partition, so that its throttle and producers are respected.
Pure."""

from collections.abc import Collection, Sequence

from control.model.ids import TopicPartition
from control.operations.executor.pacing.gentle_start import BATCH_S, gentle_start
from control.operations.reassignment.spreading import Pace, SpreadEstimate, Turns, Writing
from planner.proposal import PartitionChange
from planner.waves import Wave


class SubmissionPacer:
    """Wave after wave; `now_s` is everywhere the same monotonic clock in seconds. `has_copied`:
    whether a wave that copies data has begun already, before a crash."""

    def __init__(self, *, has_copied: bool) -> None:
        self.pace = Pace(Writing())
        self.turns = Turns()
        self.elected_s = 0.0
        """How long elections take once all is there."""
        self._later_s: list[float] = []
        """Of each wave that has not begun: how long until its last is asked for."""
        self._has_copied = has_copied
        self._ahead: list[tuple[float, PartitionChange]] = []
        self._looked_s = 0.0
        self.dropped: frozenset[TopicPartition] = frozenset()
        """Of the present wave: never asked for."""

    def spread(self, pace: Pace, foreseen: SpreadEstimate) -> None:
        """Takes a new pace, and the estimate of what is still to be submitted."""
        self.pace, self.elected_s = pace, foreseen.elected_s
        self._later_s = list(foreseen.waves_s)

    def begin(self, number: int, wave: Wave, *, throttle: int | None, now_s: float) -> None:
        """The wave of this number, from 1. Only the first wave that copies begins gently: one that
        follows finds the throttle (bytes per second) used up by those before it."""
        self.dropped = frozenset()
        self._later_s[:number] = [0.0] * len(self._later_s[:number])
        copies = any(change.adding for change in wave)
        is_first, self._has_copied = copies and not self._has_copied, copies or self._has_copied
        batches: Sequence[Wave] = [wave]
        if is_first and throttle:
            batches = gentle_start(wave, throttle)
        self._ahead = [
            (now_s + number * BATCH_S, change)
            for number, batch in enumerate(batches)
            for change in batch
        ]
        self._looked_s = now_s

    def due(self, now_s: float, *, free: Collection[TopicPartition], is_held: bool = False) -> Wave:
        """Changes to submit now, in their order. `free` ones (done, moving, or never moving) hold
        up nobody; all others wait while `is_held`."""
        if is_held:
            held_s = now_s - self._looked_s
            self._ahead = [(from_s + held_s, change) for from_s, change in self._ahead]
        self._looked_s = now_s
        due: list[PartitionChange] = []
        ahead: list[tuple[float, PartitionChange]] = []
        for from_s, change in self._ahead:
            gap_s = 0.0 if change.key in free else self.pace.after_end(change)
            may_be = change.key in free if is_held else from_s <= now_s
            if may_be and self.turns.take(change.topic, gap_s, now_s):
                due.append(change)
            else:
                ahead.append((from_s, change))
        self._ahead = ahead
        return tuple(due)

    def wait_s(self, now_s: float) -> float | None:
        """Until the next is due; null when all has been asked for."""
        opens = (
            max(from_s, self.turns.opens_s(change.topic, self.pace.after_end(change)))
            for from_s, change in self._ahead
        )
        next_s = min(opens, default=None)
        return None if next_s is None else max(next_s - now_s, 0.0)

    def left_s(self, now_s: float) -> float:
        """Seconds until the last of all is asked for, for producers' sake."""
        gaps = ((change.topic, self.pace.after_end(change)) for _, change in self._ahead)
        return self.turns.left_s(gaps, now_s) + sum(self._later_s)

    def drop(self, keys: Collection[TopicPartition]) -> None:
        """Drops partitions of the wave that are not submitted yet."""
        self.dropped |= {change.key for _, change in self._ahead if change.key in keys}
        self._ahead = [(at_s, change) for at_s, change in self._ahead if change.key not in keys]
