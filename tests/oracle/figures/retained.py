"""Random logs under retention and the groups that read them, second by second, as plain data.

Written from Kafka's rules alone: a log is cut into segments; every ``check_s`` seconds the oldest
ones are deleted whose newest record is too old, or without which the log is still large enough.
It imports nothing of the job.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

FLOWS: Final = ("steady", "bursts", "pauses")
RULES: Final = ("size", "age", "both", "deleted once", "purged", "for ever")
"""What deletes: retention, a person once, a program that deletes what is read, nothing."""
READERS: Final = ("keeps up", "each minute", "slow", "stops", "stops early", "catches up")
RECORD_BYTES: Final = 100
UNSURE_S: Final = {"steady": 80, "bursts": 180, "pauses": 1_280}
"""So exactly is known when a record was written or will be, and when retention looks: to a silence
and two readings, as each may be lacking."""


@dataclass
class Log:
    rule: str
    flow: str
    rate: int
    segment_records: int
    kept_records: int | None
    kept_s: int | None
    check_s: int
    phase_s: int
    tells_segments: bool
    first_offset: int = 0
    """What each of its offsets is told higher by."""
    start: int = 0
    end: int = 0
    bases: list[int] = field(default_factory=lambda: [0])
    """Where its segments begin, …"""
    newest_s: list[int] = field(default_factory=lambda: [0])
    """… when the last record of each was written, …"""
    first: int = 0
    """… and the oldest one that is not deleted."""
    ends: list[int] = field(default_factory=lambda: [0])
    """Where it ended after each second."""

    def ended_s(self, offset: int) -> int:
        """The last second after which it ended at this offset, or before."""
        return bisect_right(self.ends, offset) - 1

    def step(self, second: int) -> None:
        """What is written in this second, and what is deleted."""
        until = self.end + self._written(second)
        while self.end < until:
            if self.end - self.bases[-1] >= self.segment_records:
                self._begin_segment(second)
            self.end = min(until, self.bases[-1] + self.segment_records)
            self.newest_s[-1] = second
        self.ends.append(self.end)
        if self.looks_at(second):
            while self._deletes(self.first, second, self.end):
                self.first += 1
                if self.first == len(self.bases):
                    self._begin_segment(second)
            self.start = max(self.start, self.bases[self.first])

    def _begin_segment(self, second: int) -> None:
        self.bases.append(self.end)
        self.newest_s.append(second)

    @property
    def late_s(self) -> int:
        """By so much more it may seem to delete later: of segments that are not told, only the
        steps are known in which it deletes."""
        return UNSURE_S[self.flow] + (0 if self.tells_segments else self.check_s)

    def looks_at(self, second: int) -> bool:
        return second % self.check_s == self.phase_s

    def delete_to(self, offset: int) -> None:
        """A person or a program deletes the records below an offset."""
        self.start = max(self.start, offset)
        while self.first + 1 < len(self.bases) and self.bases[self.first + 1] <= self.start:
            self.first += 1

    def is_due(self, offset: int, second: int, sooner_s: int) -> bool:
        """Whether nothing keeps a record, were all so much older and the log so much longer."""
        number = bisect_right(self.bases, offset) - 1
        return self._deletes(number, second + sooner_s, self.end + self.rate * sooner_s)

    def _deletes(self, number: int, second: int, end: int) -> bool:
        """Whether nothing keeps a segment, once those before it are gone."""
        is_last = number == len(self.bases) - 1
        following = self.end if is_last else self.bases[number + 1]
        if following == self.bases[number]:
            return False
        if self.kept_s is not None and second - self.newest_s[number] > self.kept_s:
            return True
        return self.kept_records is not None and end - following >= self.kept_records

    def _written(self, second: int) -> int:
        if self.flow == "bursts":
            return self.rate * 6 if second % 120 < 20 else 0
        if self.flow == "pauses":
            return 0 if second % 3_600 >= 2_400 else self.rate
        return self.rate


@dataclass
class Reader:
    """A group that commits what it has read every ``period_s``."""

    kind: str
    period_s: int
    stops_s: int
    offset: int
    read_on: int
    committed_s: int = 0
    lost_s: int | None = None
    """Since when a record that it would read next is deleted."""
    lost_within_s: list[int | None] = field(default_factory=lambda: [None, None])
    """The same if what nobody can know had made retention eager, or loath."""

    @property
    def is_stopped(self) -> bool:
        return self.kind in ("stops", "stops early")

    def step(self, second: int, log: Log) -> None:
        """What it reads and commits in this second; once it has lost records, nothing."""
        if self.lost_s is None and not (self.is_stopped and second >= self.stops_s):
            self.read_on = min(log.end, self.read_on + self._reads(log))
            if second % self.period_s == 0 and self.read_on > self.offset:
                self.offset, self.committed_s = self.read_on, second

    def look(self, second: int, log: Log) -> None:
        if self.lost_s is None and log.start > self.offset:
            self.lost_s = second
        if not log.looks_at(second):
            return
        for number, sooner_s in enumerate((UNSURE_S[log.flow], -log.late_s)):
            # Where a group that goes on will be then is known no better.
            offset = self.offset - (0 if self.is_stopped else sooner_s * log.rate)
            is_over = self.lost_within_s[number] is not None
            if not is_over and log.is_due(max(0, offset), second, sooner_s):
                self.lost_within_s[number] = second

    def _reads(self, log: Log) -> int:
        most = log.rate * 6 if log.flow == "bursts" else log.rate
        if self.kind == "slow":
            return log.rate // 2
        return most + log.rate


@dataclass
class History:
    """A log and the group that reads it."""

    log: Log
    reader: Reader

    def step(self, second: int) -> None:
        log, reader = self.log, self.reader
        log.step(second)
        reader.step(second, log)
        if log.rule == "deleted once" and second == reader.stops_s + 200:
            log.delete_to(reader.offset - reader.offset % 7)
        if log.rule == "purged" and second % 30 == 0:
            log.delete_to(reader.offset)
        reader.look(second, log)


def go_on(of: Iterable[History], seconds: Iterable[int]) -> None:
    """What becomes of them in these seconds."""
    for second in seconds:
        for it in of:
            it.step(second)


def histories(dice: Random, count: int, *, begins_s: int) -> list[History]:
    """Every rule with every reader; the rest at random. ``begins_s``: when watching begins."""
    return [_history(dice, number, begins_s) for number in range(count)]


def _history(dice: Random, number: int, begins_s: int) -> History:
    rule, kind = RULES[number % len(RULES)], READERS[number // len(RULES) % len(READERS)]
    rate = dice.choice((10, 20, 40))
    kept_s = dice.choice((1_200, 1_800, 2_400))
    segment_s = dice.choice((50, 130, 290, 500))
    by_size, by_age = rule in ("size", "both"), rule in ("age", "both")
    check_s = dice.choice((30, 60, 300, 300, 300))
    log = Log(
        rule=rule,
        # What a slow reader loses is decided by pauses to come, which nothing foretells.
        flow=dice.choice(("steady", "steady", "bursts") if kind == "slow" else FLOWS),
        rate=rate,
        segment_records=rate * segment_s,
        kept_records=rate * kept_s if by_size else None,
        kept_s=dice.choice((kept_s, 3_600)) if by_age else None,
        check_s=check_s,
        phase_s=dice.randrange(check_s),
        tells_segments=dice.random() < 0.5,
        first_offset=dice.choice((0, 0, 2**53 + 1, 2**62)),
    )
    stops_s = begins_s + dice.choice((0, 30, 400, 900) if kind == "stops" else (-600, -30))
    behind = dice.choice((0, kept_s // 2)) if kind == "catches up" else 0
    period_s = 60 if kind == "each minute" else dice.choice((1, 5, 20))
    return History(
        log=log,
        reader=Reader(
            kind=kind, period_s=period_s, stops_s=stops_s, offset=0, read_on=-behind * rate
        ),
    )
