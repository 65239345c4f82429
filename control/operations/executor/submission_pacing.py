"""Decides when a run submits which partition, so that its throttle and producers are respected.

Copies are asked for bit by bit, not all at one moment. What new replicas ask for first is sent
before any throttle knows of it (KIP-73 looks at what was sent), at once by all leaders to all
followers, and what producers write waits behind it. So no request begins more than the throttle
would let pass until the next one (docs/decisions/0012).
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Final

from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.move.commands import ReassignCommand
from control.operations.executor.catching_up import FETCH_BYTES
from control.operations.reassignment.cluster_probes import read_fetch_backoffs
from control.operations.reassignment.placements import Placements
from control.operations.reassignment.spreading import Pace, SpreadEstimate, Turns, Writing
from planner.proposal import PartitionChange
from planner.waves import Wave

BATCHES_MAX: Final = 20
BATCH_S: Final = 0.5
"""From one batch to the next: all is asked for within ten seconds."""


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


def gentle_start(wave: Wave, rate: int) -> list[Wave]:
    """Batches of a wave, in its order, at a throttle in bytes per second.

    Example: at 2 MiB/s, of three partitions of 1 MiB and more each is a batch; twenty of 100 KiB
    are two. At 50 MiB/s twenty of any size are one.
    """
    begun = tuple(accumulate(map(_first_bytes, wave), initial=0))
    most = max(FETCH_BYTES, rate * BATCH_S, begun[-1] / BATCHES_MAX)
    numbers = (before // most for before in begun)
    batches = groupby(zip(numbers, wave, strict=False), key=itemgetter(0))
    return [tuple(change for _, change in batch) for _, batch in batches]


def _first_bytes(change: PartitionChange) -> int:
    return min(change.size_bytes, FETCH_BYTES) * len(change.adding)


async def pace_of_run(
    admin: AdminPort,
    command: ReassignCommand,
    places: Placements,
    produced: Mapping[TopicPartition, float],
    waves: Sequence[Wave],
) -> tuple[Pace, SpreadEstimate]:
    """Pace of waves that are still to be submitted; `produced`: bytes per second of whole
    topics."""
    backoff_ms = await read_fetch_backoffs(admin, command.changes)
    writing = Writing(produced=produced, leaders=places.leaders(), backoff_ms=backoff_ms)
    elects, within_s = command.elects_preferred, command.waves.spread_s
    return Pace.within(writing, waves, within_s, elects=elects)


def still_to_ask(
    waves: Sequence[Wave], places: Placements, never: Collection[TopicPartition]
) -> list[Wave]:
    """Changes that are neither done nor moving, nor left to others (`never`)."""
    return [
        tuple(
            change
            for change in wave
            if change.key not in never and not (places.is_there(change) or places.is_moving(change))
        )
        for wave in waves
    ]
