"""Who dies is STOP within 15 s and a reading, whatever came before; who works is not.

The truth comes from ``consumers``, the verdicts from the fold of the job over what a source would
tell of it.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest

from tests.oracle.figures.consumers import (
    DEATH_S,
    SILENCE_S,
    WORK_S,
    Consumer,
    consumers,
    readings,
)
from tests.oracle.figures.watched import T0_MS, broker_row, partition_rows
from tests.oracle.seeds import AT_ONCE, long_run
from tests.support.folded_rounds import FoldedRounds

STOP_S: Final = 15
READING_S: Final = 2
PACES: Final = 3
SETTLED_S: Final = 60
"""So long after it began anew, its pace is learnt."""
COUNT: Final = 72
RESTARTS: Final = 4
AGAIN_S: Final = WORK_S + SILENCE_S


def _tell(rounds: FoldedRounds, at_ms: int, of: list[Consumer]) -> None:
    rows = [
        row
        for number, it in enumerate(of)
        for row in partition_rows(
            number,
            at_ms,
            offset=it.offset,
            committed_s=it.committed_s,
            member="m" if it.is_alive and it.is_member else None,
            log_start_offset=0,
            high_watermark=it.end,
            # A source looks only where a commit stands.
            readable_offset=it.readable if it.offset >= it.readable < it.end else None,
        )
    ]
    rounds.round(1, at_ms, broker_row(at_ms), *rows)


def _verdicts(rounds: FoldedRounds, at_ms: int) -> list[str | None]:
    commits = rounds.batch(at_ms).state.commits.select(["partition", "status"])
    rows: list[dict[str, Any]] = commits.to_pylist()
    return [row["status"] for row in sorted(rows, key=lambda row: row["partition"])]


def judged(dice: Random, of: list[Consumer]) -> Iterator[tuple[int, list[str | None]]]:
    """The seconds at which everything is read, and the verdict of each consumer then.

    The job starts again now and then: what it missed, it reads with the next reading.
    """
    rounds, wanted = FoldedRounds(), readings()
    restarts = {*dice.sample(wanted[1:], RESTARTS), wanted[-DEATH_S] + dice.randrange(DEATH_S)}
    for second in range(wanted[-1] + 1):
        for it in of:
            it.step(second)
        if second not in wanted:
            continue
        at_ms = T0_MS + 1_000 * second
        _tell(rounds, at_ms, of)
        if second in restarts:
            rounds.restart(at_ms)
        else:
            yield second, _verdicts(rounds, at_ms)


def misjudged(seed: int, count: int) -> list[str]:
    """Every alarm that is late, missed or false."""
    dice, found = Random(seed), list[str]()
    of = consumers(dice, count)
    for second, verdicts in judged(dice, of):
        for it, status in zip(of, verdicts, strict=True):
            name = f"seed {seed}, {second} s, {it}"
            if it.dead_s is None and status in ("STOP", "STALL"):
                found.append(f"{status} though it works: {name}")
            if it.dead_s is None or second < AGAIN_S + SETTLED_S or status == "STOP":
                continue
            if second > it.dead_s + max(STOP_S, PACES * it.period_s) + READING_S:
                found.append(f"{status} though it is dead: {name}")
    return found


@pytest.mark.parametrize("seed", range(1))
def test_alarms_come_in_time_and_for_those_that_are_dead(seed: int) -> None:
    assert misjudged(seed, COUNT)[:5] == []


@pytest.mark.soak
@pytest.mark.parametrize("seeds", long_run(COUNT, 6_700, AT_ONCE))
def test_alarms_come_in_time_over_many_histories(seeds: range) -> None:
    assert misjudged(seeds.start, len(seeds))[:5] == []
