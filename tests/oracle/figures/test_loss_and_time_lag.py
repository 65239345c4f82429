"""Data loss in and time lag over random histories, beside what became of the records.

The truth comes from ``retained``: when a record that a group had not read was deleted, and when the
log ended where the group stands.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

import pytest

from tests.oracle.figures.retained import History, Log, go_on, histories
from tests.oracle.figures.watched import Figures, log_points, watched
from tests.oracle.seeds import AT_ONCE, long_run

BEGINS_S: Final = 4_000
ENDS_S: Final = 6_400
TRUTH_ENDS_S: Final = ENDS_S + 5_400
"""What is foretold at the end has come true by then, or was no alarm."""
EVERY_S: Final = 40
COUNT: Final = 72
FOREVER_S: Final = 1_000_000
NEAR_S: Final = 600
FACTOR: Final = 1.5
SETTLED_S: Final = 120
HOUR_MS: Final = 3_600_000
NAMES: Final = ("retention_risk_ms", "lag", "time_lag_ms", "time_lag_error_ms")
Told = list[tuple[int, Figures]]


def seen(seed: int, count: int) -> tuple[list[History], list[Told], list[str]]:
    """Histories, their figures by second, and those that are wrong at that moment."""
    of = histories(Random(seed), count, begins_s=BEGINS_S)
    told: list[Told] = [[] for _ in of]
    wrong: list[str] = []
    for second, rows in watched(of, begins_s=BEGINS_S, ends_s=ENDS_S, every_s=EVERY_S):
        for number, (it, row) in enumerate(zip(of, rows, strict=True)):
            told[number].append((second, {name: row[name] for name in NAMES}))
            wrong += [
                f"seed {seed} {second} s: {_named(it)}: {told}" for told in _ages(it, row, second)
            ]
    go_on(of, range(ENDS_S, ENDS_S + NEAR_S))
    # The others were shown no loss to come.
    open_still = [
        it
        for it, each in zip(of, told, strict=True)
        if it.reader.lost_s is None and any(_is_alarm(row) for _, row in each)
    ]
    go_on(open_still, range(ENDS_S + NEAR_S, TRUTH_ENDS_S))
    return of, told, wrong


def _named(it: History) -> str:
    log, reader = it.log, it.reader
    return f"{log.rule} {log.flow} {log.check_s} s, {reader.kind} {reader.period_s} s"


def _ages(it: History, row: Figures, second: int) -> Iterator[str]:
    """A time lag that is further from the truth than it says, or than it may be."""
    told_ms, error_ms = row["time_lag_ms"], row["time_lag_error_ms"]
    if not row["lag"] or told_ms is None:
        return
    offset = row["committed_offset"]
    true_ms = 1_000 * (second - it.log.ended_s(offset))
    off_ms = abs(told_ms - true_ms)
    if off_ms > error_ms + 1_000:
        yield f"time lag {told_ms} ± {error_ms}, in truth {true_ms}"
    stands = it.reader.is_stopped and it.reader.stops_s > BEGINS_S
    if off_ms > 1_000 * EVERY_S + max(_untold_ms(it.log, offset), 0 if stands else true_ms / 4):
        yield f"time lag {told_ms}, in truth {true_ms}"


def _untold_ms(log: Log, offset: int) -> float:
    """How far apart the records are whose times the source told, where nobody watched yet."""
    if offset >= log.ends[BEGINS_S]:
        return 0
    told = log_points(log) or []
    pairs = [(at - log.first_offset, ms) for at, ms in zip(told[::2], told[1::2], strict=True)]
    times = [at_ms for at, at_ms in pairs if at > offset]
    before = [at_ms for at, at_ms in pairs if at <= offset]
    return times[0] - before[-1] if times and before else float("inf")


def _is_alarm(row: Figures) -> bool:
    return row["retention_risk_ms"] is not None and row["retention_risk_ms"] < HOUR_MS


def losses(it: History, told: Told) -> str | None:
    """What is wrong with the times until a loss that this group was shown."""
    lost_s = it.reader.lost_s
    later = [(at, row) for at, row in told if at >= BEGINS_S + SETTLED_S]
    left = [(at, row["retention_risk_ms"]) for at, row in later]
    alarms = [
        (at, row["retention_risk_ms"])
        for at, row in later
        if _is_alarm(row)
        if lost_s is None or lost_s - at > FACTOR * HOUR_MS / 1_000
    ]
    if alarms:
        return f"loses at {lost_s} s, shown {alarms[:3]} ({len(alarms)})"
    # When a producer that pauses writes again decides when size deletes: nothing foretells that.
    if it.log.flow == "pauses" or lost_s is None or lost_s < BEGINS_S + 2 * NEAR_S:
        return None
    off = [
        (at, ms)
        for at, ms in left
        if lost_s - NEAR_S <= at < lost_s - EVERY_S
        if ms is None or not _is_near(it, at, ms / 1_000)
    ]
    return f"loses at {lost_s} s, shown {off[:3]} ({len(off)})" if off else None


def _is_near(it: History, at: int, told_s: float) -> bool:
    """Whether this time until a loss is right, as far as anybody can know.

    A look of retention is seen at the next reading, or at the one after it.
    """
    least_s, most_s = (FOREVER_S if one is None else one for one in it.reader.lost_within_s)
    seen_s = 2 * EVERY_S
    return (least_s - at) / FACTOR - seen_s <= told_s <= (most_s - at) * FACTOR + seen_s


def misjudged(seed: int, count: int) -> list[str]:
    of, told, wrong = seen(seed, count)
    found = [f"seed {seed}: {_named(it)}: {off}" for it, each in zip(of, told, strict=True)
             if (off := losses(it, each))]  # fmt: skip
    return found + wrong


def test_losses_are_foretold_and_time_lag_is_as_close_as_it_says() -> None:
    assert misjudged(1, COUNT)[:8] == []


@pytest.mark.soak
@pytest.mark.parametrize("seeds", long_run(COUNT, 6_700, AT_ONCE))
def test_figures_hold_over_many_histories(seeds: range) -> None:
    assert misjudged(seeds.start, len(seeds))[:8] == []
