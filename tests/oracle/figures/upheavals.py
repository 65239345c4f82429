"""Random partitions and their groups through upheavals, second by second, as plain data: rewinds,
topics made anew, partitions added, elections that cut the log off, brokers that start again,
sources that are silent or whose clock is off, a job that starts again. Each cluster has topics and
groups of the same names. It imports nothing of the job.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

KINDS: Final = (
    *("none", "rewind", "made anew", "added", "election", "cut off", "deleted records", "stops"),
    *("idle", "beyond the end"),
)
BASES: Final = (0, 0, 2**53 + 1, 2**62)
OF_CLUSTER: Final = 30
"""Partitions of a cluster; there are two clusters at least."""
BROKERS: Final = (1, 2)
CLOCKS_S: Final = (0, 0, 3, -3)
AWAY_S: Final = (1, 4, 12)
"""For how long the job is away while it starts again; sources go on."""
FIRST_S: Final = 45
LAST_S: Final = 60
ENDS_S: Final = 110


@dataclass(frozen=True, slots=True)
class Truth:
    """A partition and its group after a second."""

    second: int
    start: int
    end: int
    offset: int


@dataclass
class Partition:
    """One group reads it. ``at_s``: when the upheaval comes."""

    cluster: str
    number: int
    kind: str
    at_s: int
    away_s: int
    """So long a topic is away before it is made anew."""
    base: int
    rate: int
    period_s: int
    slow: bool
    leader: int
    leader_epoch: int = 5
    start: int = 0
    end: int = 0
    offset: int = 0
    broker_epoch: int = 1
    exists_s: int | None = 0
    """Since when it exists; None: it does not."""
    past: list[Truth] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = self.end = self.offset = self.base
        if self.kind == "added":
            self.exists_s = None

    def step(self, second: int) -> None:
        """What happens in this second."""
        if self.exists_s is None:
            if second < self.at_s + (self.away_s if self.kind == "made anew" else 0):
                return
            self.exists_s = second
        elif second == self.at_s:
            self._upheaval(second)
        if self.exists_s is None:
            return
        stops = self.kind == "stops" and second >= self.at_s
        if not (self.kind == "idle" and second < self.at_s):
            self.end += self.rate
        if second % self.period_s == 0 and not stops and self.offset <= self.end:
            behind = min(20 * self.rate, (self.end - self.start) // 2) if self.slow else 0
            self.offset = max(self.offset, self.end - behind)
        self.past.append(Truth(second, self.start, self.end, self.offset))

    def _upheaval(self, second: int) -> None:
        if self.kind == "rewind":
            self.offset = max(self.start, self.offset - 15 * self.rate)
        elif self.kind == "made anew":
            self.start = self.end = self.offset = 0
            self.leader_epoch, self.exists_s = 0, None
            self.past.clear()
        elif self.kind in ("election", "cut off"):
            self.leader, self.leader_epoch = 3 - self.leader, self.leader_epoch + 1
            if self.kind == "cut off":
                self.end -= 3 * self.rate
                self.offset = min(self.offset, self.end)
        elif self.kind == "deleted records":
            self.start = self.end
        elif self.kind == "beyond the end":
            self.offset = self.end + 1_000 * self.rate

    def lately(self, second: int, for_s: int) -> Sequence[Truth]:
        """The truth of the last seconds, this one included."""
        return [it for it in self.past[-for_s - 1 :] if it.second >= second - for_s]


@dataclass
class Source:
    """A broker as a source: its clock, and when it says nothing."""

    cluster: str
    broker: int
    clock_s: int
    silent_at: range
    starts_again_s: int | None
    late: Any = None
    """Its last round, which may come once more."""

    def is_silent(self, second: int) -> bool:
        return second in self.silent_at

    def is_unsure(self, second: int) -> bool:
        """It says nothing, or has just started again."""
        return self.is_silent(second) or second == self.starts_again_s


def clusters(count: int) -> list[str]:
    return [f"c{number}" for number in range(max(2, count // OF_CLUSTER))]


def partitions(dice: Random, count: int) -> list[Partition]:
    """Every kind; the rest at random."""
    names = clusters(count)
    return [
        Partition(
            cluster=names[place],
            number=number,
            # Those of one name have different fates.
            kind=KINDS[(number + 3 * place) % len(KINDS)],
            at_s=dice.randrange(FIRST_S, LAST_S),
            away_s=dice.choice((0, 1, 3, 8)),
            base=dice.choice(BASES),
            rate=dice.choice((1, 9, 200)),
            period_s=dice.choice((1, 1, 5)),
            slow=dice.random() < 0.4,
            leader=dice.choice(BROKERS),
        )
        for number, place in (divmod(each, len(names)) for each in range(count))
    ]


def absences(dice: Random) -> list[range]:
    """When the job is away: it starts again at the end of each."""
    return [range(at, at + dice.choice(AWAY_S)) for at in (dice.randrange(8, 50), LAST_S + 22)]


def sources(dice: Random, count: int) -> list[Source]:
    """Of each cluster two; each second source is silent for a while, some start again."""
    found = []
    for cluster in clusters(count):
        for broker in BROKERS:
            begins_s = dice.randrange(20, 80)
            silent_s = dice.choice((0, 0, 4, 9))
            found.append(
                Source(
                    cluster=cluster,
                    broker=broker,
                    clock_s=dice.choice(CLOCKS_S),
                    silent_at=range(begins_s, begins_s + silent_s),
                    starts_again_s=dice.choice((None, begins_s + silent_s)),
                )
            )
    return found
