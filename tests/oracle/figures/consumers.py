"""Random consumers, second by second, as plain data; it imports nothing of the job.

All share one clock. Each reads a partition of its own, in four phases: it works, twenty minutes in
which it or its producer may be silent, it works again, and then some die.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Final

WORK_S: Final = 120
SILENCE_S: Final = 1_200
DEATH_S: Final = 70
PERIODS_S: Final = (1, 2, 5, 10, 20, 60)
RATES: Final = (1, 7, 100)
SILENCES: Final = ("busy", "no traffic", "stopped", "bursts")
"""Work as usual; nothing to read; no consumer while records come; nothing to read but a burst every
ten minutes."""


@dataclass
class Consumer:
    """Reads a partition and commits every ``period_s``, as long as it lives."""

    period_s: int
    rate: int
    silence: str
    dies: bool
    is_member: bool
    """Or commits without being a member of its group."""
    backlog: int
    """Records that it lags behind at first, and takes off slowly."""
    ends_with: int = 0
    """Markers and records of aborted transactions behind what was written in each second."""
    end: int = 10_000
    offset: int = 0
    readable: int = 10_000
    """Where the records end that it gets."""
    read_on: int = 0
    """How far it has read, committed or not."""
    is_alive: bool = True
    committed_s: int = 0
    dead_s: int | None = None
    """Since when it is dead with records waiting."""
    silent_at: range = field(default_factory=lambda: range(WORK_S, WORK_S + SILENCE_S))

    def __post_init__(self) -> None:
        self.offset = self.read_on = self.end - self.backlog

    def step(self, second: int) -> None:
        """What happens in this second."""
        is_silent = second in self.silent_at
        self.is_alive = not (is_silent and self.silence == "stopped")
        if self.dies and second >= self.silent_at.stop + WORK_S:
            self.is_alive = False
        produced = self._produced(second) if is_silent else self.rate
        if produced:
            self.readable = self.end + produced
            self.end = self.readable + self.ends_with
        if self.is_alive:
            most = self.rate + 1 + self.ends_with
            self.read_on = min(self.readable, self.read_on + most)
            if second % self.period_s == 0 and self.read_on > self.offset:
                self.offset, self.committed_s = self.read_on, second
        is_dead = not self.is_alive and self.offset < self.readable
        self.dead_s = (second if self.dead_s is None else self.dead_s) if is_dead else None

    def _produced(self, second: int) -> int:
        if self.silence == "no traffic":
            return 0
        if self.silence == "bursts":
            return self.rate if second % 600 < 20 else 0
        return self.rate


def consumers(dice: Random, count: int) -> list[Consumer]:
    """Every kind of silence, of those that live and of those that die; the rest at random."""
    return [
        Consumer(
            period_s=dice.choice(PERIODS_S),
            rate=dice.choice(RATES),
            silence=SILENCES[number % len(SILENCES)],
            dies=number // len(SILENCES) % 2 == 0,
            is_member=dice.random() < 0.7,
            backlog=dice.choice((0, 0, 40, 5_000)),
            ends_with=dice.choice((0, 0, 1, 30)),
        )
        for number in range(count)
    ]


def readings() -> list[int]:
    """The seconds at which everything is read: each second at the end, seldom in between."""
    again = WORK_S + SILENCE_S
    return [
        *range(1, WORK_S, 2),
        *range(WORK_S, again, 15),
        *range(again, again + WORK_S, 2),
        *range(again + WORK_S, again + WORK_S + DEATH_S),
    ]
