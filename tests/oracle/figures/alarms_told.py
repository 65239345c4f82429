"""Findings beside what is wrong in truth, each second: how late, how often false or flapping."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from control.model.finding import each_of
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from spark_metrics.window.tables import NOW_TABLES
from tests.oracle.figures.troubled import T0_MS, Troubled
from tests.support.store_builder import table_of

FLAP_S: Final = 15
"""Off for no longer, while it is true all the time."""
JUDGED: Final = (
    *("broker-fenced", "disk", "clock", "cordoned"),
    *("offline", "under-min-isr", "at-min-isr", "not-preferred"),
)


@dataclass(slots=True)
class Score:
    """Of one kind of finding; times in seconds."""

    right_on: int = 0
    right_off: int = 0
    missed: int = 0
    false: int = 0
    appears: list[int] = field(default_factory=list)
    clears: list[int] = field(default_factory=list)
    flaps: int = 0


@dataclass(slots=True)
class _Alarm:
    is_wrong: bool = False
    is_told: bool = False
    since_s: int = 0
    """Since when it is as it is in truth."""
    off_s: int | None = None
    """Since when it is not told, though it was, and though it is true."""


def told_ids(snapshot: OperatorSnapshot) -> set[str]:
    """Ids of all findings, those under others too."""
    return {it.id for item in each_of(snapshot.findings) for it in (item, *item.consequences)}


def judged(seeds: Iterable[int], seconds: int) -> dict[str, Score]:
    """The score of each kind over these histories."""
    scores = {kind: Score() for kind in JUDGED}
    for seed in seeds:
        _judge_one(Troubled(Random(seed)), seconds, scores)
    return scores


def _judge_one(cluster: Troubled, seconds: int, scores: dict[str, Score]) -> None:
    alarms: dict[str, _Alarm] = {}
    snapshot: OperatorSnapshot | None = None
    for second in range(seconds):
        cluster.step()
        rows = cluster.tables()
        snapshot = build_snapshot(
            {name: table_of(rows.get(name, ()), it) for name, it in NOW_TABLES.items()},
            version=second,
            now_ms=T0_MS + 1_000 * cluster.second,
            earlier=None if snapshot is None else snapshot.findings,
        )
        wrong, told = cluster.wrong, told_ids(snapshot)
        for name in {*wrong, *told, *alarms}:
            score = scores.get(name.partition(" ")[0])
            if score is not None:
                alarm = alarms.setdefault(name, _Alarm())
                _count(alarm, score, second, is_wrong=name in wrong, is_told=name in told)


def _count(alarm: _Alarm, score: Score, second: int, *, is_wrong: bool, is_told: bool) -> None:
    if is_wrong != alarm.is_wrong:
        alarm.is_wrong, alarm.since_s, alarm.off_s = is_wrong, second, None
    if is_told != alarm.is_told:
        alarm.is_told = is_told
        if is_told == is_wrong and alarm.off_s is None:
            (score.appears if is_told else score.clears).append(second - alarm.since_s)
        elif is_wrong and is_told and alarm.off_s is not None:
            score.flaps += second - alarm.off_s <= FLAP_S
        elif is_wrong:
            alarm.off_s = second
    if is_wrong:
        score.right_on += is_told
        score.missed += not is_told
    else:
        score.right_off += not is_told
        score.false += is_told
