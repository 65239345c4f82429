"""Judges the job's verdicts as alarms are judged, by what in truth became of simulated groups.

    python -m benchmarks.alarms [--groups 160] [--logs 72] [--seed 1]

Groups work, die, rewind, fall behind, and get commits beyond the end of their log; logs delete
records under retention. The job's own fold computes figures from what a source would tell of them.
Prints, as Markdown, a confusion matrix of readings, and of each alarm how long it takes until it is
on, and how often it is false, missed, or flaps.
"""

import argparse
import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from broker.metrics_schema import Row
from tests.oracle.figures.retained import go_on, histories
from tests.oracle.figures.watched import T0_MS, broker_row, partition_rows, watched
from tests.support.folded_rounds import FoldedRounds

WORKS: Final = "works"
INCIDENTS: Final = (
    *(WORKS, "dies", "dies after an idle hour", "dies, its member does not"),
    *("rewinds", "falls behind", "commits beyond the end", "lost records"),
)
"""What becomes of a group at ``AT_S``."""
IDLE_S: Final = 420
AT_S: Final = 4_000
ENDS_S: Final = 4_400
PERIODS_S: Final = (1, 5, 20)
RATES: Final = (5, 40, 300)
FLAP_S: Final = 600
READING_S: Final = 1
VERDICTS: Final = ("OK", "WARN", "STOP", "STALL", "REWIND", "BEYOND", "LOST", "none")
LOSS_BEGINS_S: Final = 4_000
LOSS_ENDS_S: Final = 8_000
LOSS_EVERY_S: Final = 20
HOUR_S: Final = 3_600
NEAR_S: Final = 600
FACTOR: Final = 1.5


@dataclass
class Group:
    """A consumer of one partition; ``right`` are the verdicts that are true of it now."""

    incident: str
    period_s: int
    rate: int
    is_idle: bool
    end: int = 100_000
    start: int = 0
    offset: int = 100_000
    committed_s: int = 0
    right: frozenset[str] = frozenset({"OK"})
    due_s: int | None = None
    """Since when one of them has been due; None: OK is."""

    def step(self, second: int) -> None:
        """What happens in this second."""
        is_on = second >= AT_S
        writes = not self.is_idle or not IDLE_S <= second < AT_S - 30
        self.end += self.rate if writes else 0
        if self.incident.startswith("dies") and is_on:
            self._is_due(second, "STOP", "STALL")
        elif self.incident == "commits beyond the end" and is_on:
            if second == AT_S:
                self.offset, self.committed_s = self.end + 10**6, second
            self._is_due(second, "BEYOND")
        elif self.incident == "lost records" and is_on:
            self.start = max(self.start, self.end - 10 * self.rate)
            if self.start > self.offset:
                self._is_due(second, "LOST")
        elif self.incident == "rewinds" and second == AT_S:
            self.offset, self.committed_s = self.offset - 3_600 * self.rate, second
            self._is_due(second, "REWIND")
        elif second % self.period_s == 0 and self.offset < self.end:
            self._read_on(second, is_on)

    def _read_on(self, second: int, is_on: bool) -> None:
        most = (self.rate * 2 + 1) * self.period_s
        if self.incident == "falls behind" and is_on:
            most = self.rate * self.period_s // 2
            self._is_due(second, "WARN")
        if self.incident == "rewinds" and second >= AT_S + 60:
            # It catches up: nothing is wrong any more.
            self.right, self.due_s = frozenset({"OK"}), None
        self.offset, self.committed_s = min(self.end, self.offset + most), second

    def _is_due(self, second: int, *verdicts: str) -> None:
        if self.due_s is None:
            self.right, self.due_s = frozenset(verdicts), second

    @property
    def has_member(self) -> bool:
        return self.incident == "dies, its member does not" or not (self.due_s and self.is_dead)

    @property
    def is_dead(self) -> bool:
        return self.incident.startswith("dies")

    def rows(self, number: int, at_ms: int) -> Iterable[Row]:
        return partition_rows(
            number,
            at_ms,
            offset=self.offset,
            committed_s=self.committed_s,
            member="m" if self.has_member else None,
            log_start_offset=self.start,
            high_watermark=self.end,
        )


@dataclass
class Alarm:
    """One alarm over many histories."""

    name: str
    delays_s: list[float] = field(default_factory=list)
    missed: int = 0
    quiet: int = 0
    false: int = 0
    flaps: int = 0
    """Histories in which it was on, off and on again within ten minutes."""

    def see(self, true_since_s: int | None, on: Sequence[tuple[int, bool]]) -> None:
        """A history; ``on``: when it was read, and whether the alarm was on."""
        rose = [at for (_, before), (at, now) in itertools.pairwise(on) if now and not before]
        self.flaps += any(two - one <= FLAP_S for one, two in itertools.pairwise(rose))
        is_false = any(now for at, now in on if true_since_s is None or at < true_since_s)
        self.false += is_false
        if true_since_s is None:
            self.quiet += not is_false
            return
        first = next((at for at, now in on if now and at >= true_since_s), None)
        if first is None:
            self.missed += 1
        else:
            self.delays_s.append(first - true_since_s)

    @property
    def line(self) -> str:
        times = ("–", "–")
        if self.delays_s:
            of = (statistics.median(self.delays_s), max(self.delays_s))
            times = (f"{of[0]:.0f} s", f"{of[1]:.0f} s")
        told = (len(self.delays_s), self.missed, self.quiet, self.false, self.flaps, *times)
        return f"| {self.name} | {' | '.join(map(str, told))} |"


def groups_of(dice: Random, count: int) -> list[Group]:
    """Every incident; the rest at random."""
    return [
        Group(
            incident=(incident := INCIDENTS[number % len(INCIDENTS)]),
            period_s=dice.choice(PERIODS_S),
            rate=dice.choice(RATES),
            is_idle="idle" in incident or (incident == WORKS and dice.random() < 0.5),
        )
        for number in range(count)
    ]


def readings() -> list[int]:
    """Each minute of the hour before, each second about the incident, then each five."""
    before, after = range(IDLE_S, AT_S - 60, 60), range(AT_S + 100, ENDS_S, 5)
    return [*range(300, IDLE_S, 4), *before, *range(AT_S - 60, AT_S + 100), *after]


def judge(of: Sequence[Group]) -> tuple[list[Alarm], Counter[tuple[str, str]]]:
    """Alarms by incident, and readings from the incident on by incident and verdict."""
    rounds, wanted = FoldedRounds(), set(readings())
    on: list[list[tuple[int, bool]]] = [[] for _ in of]
    matrix: Counter[tuple[str, str]] = Counter()
    for second in range(1, ENDS_S):
        for it in of:
            it.step(second)
        if second not in wanted:
            continue
        for it, each, verdict in zip(of, on, verdicts(rounds, of, second), strict=True):
            is_on = verdict in it.right if it.due_s else verdict not in ("OK", "WARN", "none")
            each.append((second, is_on))
            matrix[it.incident, verdict] += second >= AT_S
    found = []
    for incident in INCIDENTS:
        alarm = Alarm(incident)
        for it, each in zip(of, on, strict=True):
            if it.incident == incident:
                alarm.see(None if incident == WORKS else it.due_s or AT_S, each)
        found.append(alarm)
    return found, matrix


def verdicts(rounds: FoldedRounds, of: Sequence[Group], second: int) -> list[str]:
    at_ms = T0_MS + 1_000 * second
    rows = (row for number, it in enumerate(of) for row in it.rows(number, at_ms))
    rounds.round(1, at_ms, broker_row(at_ms), *rows)
    names = ["partition", "status", "lost_records"]
    commits: list[dict[str, Any]] = rounds.batch(at_ms).state.commits.select(names).to_pylist()
    commits.sort(key=lambda row: row["partition"])
    return ["LOST" if row["lost_records"] else row["status"] or "none" for row in commits]


def loss_alarm(seed: int, count: int) -> tuple[Alarm, str]:
    """Loss within an hour, and how near its time was in the last ten minutes."""
    of = histories(Random(seed), count, begins_s=LOSS_BEGINS_S)
    told: list[list[tuple[int, float | None]]] = [[] for _ in of]
    for second, rows in watched(
        of, begins_s=LOSS_BEGINS_S, ends_s=LOSS_ENDS_S, every_s=LOSS_EVERY_S
    ):
        for number, row in enumerate(rows):
            risk_ms = row["retention_risk_ms"]
            told[number].append((second, None if risk_ms is None else risk_ms / 1_000))
    go_on(of, range(LOSS_ENDS_S, LOSS_ENDS_S + 2 * HOUR_S))
    alarm, factors = Alarm("data loss within an hour"), []
    for it, each in zip(of, told, strict=True):
        lost_s = it.reader.lost_s
        if lost_s is not None and lost_s <= LOSS_BEGINS_S + NEAR_S:
            continue
        true_s = LOSS_ENDS_S + 3 * HOUR_S if lost_s is None else lost_s
        # Between an hour and a factor above it, the alarm is neither false nor due.
        on = [
            (at, left is not None and left < HOUR_S)
            for at, left in each
            if not HOUR_S < true_s - at <= FACTOR * HOUR_S
        ]
        is_due = true_s - HOUR_S < LOSS_ENDS_S
        alarm.see(max(LOSS_BEGINS_S, true_s - HOUR_S) if is_due else None, on)
        factors += [
            _factor(left, true_s - at) for at, left in each if true_s - NEAR_S <= at < true_s - 30
        ]
    within = 100 * sum(it <= FACTOR for it in factors) / max(1, len(factors))
    worst = max(factors, default=1.0)
    return alarm, f"{within:.1f} % of {len(factors):,} readings; the worst errs by {worst:.1f}"


def _factor(told_s: float | None, true_s: float) -> float:
    """By how much it errs; what is unknown errs without bound."""
    return max(told_s / true_s, true_s / told_s) if told_s else float("inf")


def table(alarms: Iterable[Alarm], matrix: Counter[tuple[str, str]]) -> str:
    """Both tables."""
    head = "| what becomes of a group | on | missed | quiet | false | flaps | median | worst |"
    seen = [it for it in VERDICTS if any(matrix[of, it] for of in INCIDENTS)]
    whole = {of: sum(matrix[of, it] for it in VERDICTS) or 1 for of in INCIDENTS}

    def shares(of: str) -> str:
        return " | ".join(f"{100 * matrix[of, it] / whole[of]:.1f}" for it in seen)

    return "\n".join(
        [
            *(head, "|---" * 8 + "|", *(it.line for it in alarms), ""),
            f"| % of readings since | {' | '.join(seen)} |",
            "|---" * (len(seen) + 1) + "|",
            *(f"| {of} | {shares(of)} |" for of in INCIDENTS),
        ]
    )


def main() -> None:
    """Simulate, fold, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=160)
    parser.add_argument("--logs", type=int, default=72)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    alarms, matrix = judge(groups_of(Random(chosen.seed), chosen.groups))
    loss, near = loss_alarm(chosen.seed, chosen.logs)
    print(table([*alarms, loss], matrix))
    print(f"\nData loss in, the last ten minutes before it, within a factor of {FACTOR}: {near}.")


if __name__ == "__main__":
    main()
