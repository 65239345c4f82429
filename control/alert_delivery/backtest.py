"""Tries rules on stored history: when each would have rung, by the very code that judges now."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.alert_delivery.evaluate import FINDINGS, asked_fields, reading_of
from control.alerts.alert import Alert
from control.alerts.machine import GAP_MS, AlertMachine
from control.alerts.readings import Reading
from control.alerts.rules import AlertRule
from control.model.ids import ClusterId
from control.views.snapshots.past import snapshots_at
from control.views.snapshots.snapshot import LISTS, OperatorSnapshot
from control.views.snapshots.store import StoreReader

STEP_MS_MIN: Final = 1_000
STEP_MS_MAX: Final = 3_600_000
STEPS_MAX: Final = 1_500
"""A longer stretch is looked at less often, unless the step is named."""
ROWS_MAX: Final = 200_000
"""Partitions and commits that are in memory at one time, of all moments that are read together."""
MOMENTS_MIN: Final = 4
MOMENTS_MAX: Final = 64
EPISODES_MAX: Final = 10_000
"""Episodes that one rule is asked to remember."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """When one rule would have rung."""

    rule: AlertRule
    episodes: Sequence[Alert] = ()
    """Those that it would have told, the oldest first."""
    left_out: int = 0
    """Further ones beyond ``EPISODES_MAX``."""
    not_kept: Sequence[str] = ()
    """Columns of its filter that history does not hold: it can ring only live."""
    unknown_steps: int = 0
    """Moments of which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """The outcome of a trial."""

    since_ms: int
    until_ms: int
    step_ms: int
    steps: int
    """Moments that were looked at."""
    outcomes: Sequence[RuleOutcome]


@dataclass(slots=True)
class _Tally:
    episodes: dict[str, Alert] = field(default_factory=dict)
    left_out: int = 0
    known: set[str] = field(default_factory=set)
    unknown_steps: int = 0


def step_for(since_ms: int, until_ms: int) -> int:
    """A whole number of seconds that looks at a stretch often enough, and is done soon."""
    wanted = (until_ms - since_ms) / STEPS_MAX
    return min(max(round(wanted / 1_000 + 0.5) * 1_000, STEP_MS_MIN), STEP_MS_MAX)


def backtest(
    reader: StoreReader,
    rules: Sequence[AlertRule],
    *,
    cluster: ClusterId,
    name: str,
    since_ms: int,
    until_ms: int,
    step_ms: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Backtest:
    """Look at each step of a stretch. ``progress`` hears of each moment.

    Raises:
        StoreUnreadableError: there is a store, but it cannot be read.
    """
    machine = AlertMachine(rules, {}, gap_ms=max(GAP_MS, 3 * step_ms))
    tallies = {it.name: _Tally() for it in rules if it.is_for(name)}
    moments = range(since_ms, until_ms + 1, step_ms)
    for at_ms, snapshot in _snapshots(reader, cluster, moments):
        progress(at_ms)
        if snapshot is None:
            for tally in tallies.values():
                tally.unknown_steps += 1
            continue
        reading = reading_of(
            snapshot, rules, cluster=name, at_ms=at_ms, open_matches=machine.open_matches(name)
        )
        _count(tallies, rules, snapshot, reading)
        for alert in machine.handle(reading):
            _remember(tallies[alert.rule], alert)
        machine.forget_told((), at_ms)
    chosen = [it for it in rules if it.is_for(name)]
    return Backtest(
        since_ms=since_ms,
        until_ms=until_ms,
        step_ms=step_ms,
        steps=len(moments),
        outcomes=[_outcome(it, tallies[it.name]) for it in chosen],
    )


def _snapshots(
    reader: StoreReader, cluster: ClusterId, moments: range
) -> Iterator[tuple[int, OperatorSnapshot | None]]:
    """The state at each moment, in order: as many are read together as fit into memory."""
    start, count = 0, MOMENTS_MIN
    while some := moments[start : start + count]:
        rows = 1
        for at_ms, snapshot in zip(
            some, snapshots_at(reader, cluster=cluster, moments=some), strict=True
        ):
            yield at_ms, snapshot
            if snapshot is not None:
                state = snapshot.cluster
                rows = max(rows, state.partitions.num_rows + state.commits.num_rows)
        start, count = start + count, min(max(ROWS_MAX // rows, MOMENTS_MIN), MOMENTS_MAX)


def _remember(tally: _Tally, alert: Alert) -> None:
    if alert.fired_ms is None:
        return
    if alert.episode in tally.episodes or len(tally.episodes) < EPISODES_MAX:
        tally.episodes[alert.episode] = alert
    elif alert.is_open:
        tally.left_out += 1


def _count(
    tallies: dict[str, _Tally],
    rules: Sequence[AlertRule],
    snapshot: OperatorSnapshot,
    reading: Reading,
) -> None:
    for rule in rules:
        if rule.name not in reading.rules:
            continue
        tally = tallies[rule.name]
        tally.unknown_steps += not reading.rules[rule.name].is_known
        tally.known |= _known_columns(rule, snapshot)


def _known_columns(rule: AlertRule, snapshot: OperatorSnapshot) -> set[str]:
    """Columns of its filter that any row knows at this moment."""
    if rule.condition.table == FINDINGS:
        return set()
    table = LISTS[rule.condition.table].table(snapshot)
    return {name for name, column in asked_fields(rule) if _is_known(table[column])}


def _is_known(column: pa.ChunkedArray) -> bool:
    known: bool = bool(np.any(~pc.is_null(column, nan_is_null=True).to_numpy()))
    return known


def _outcome(rule: AlertRule, tally: _Tally) -> RuleOutcome:
    episodes = sorted(tally.episodes.values(), key=lambda it: (it.fired_ms or 0, it.subject))
    asked = [] if rule.condition.table == FINDINGS else [name for name, _ in asked_fields(rule)]
    return RuleOutcome(
        rule=rule,
        episodes=episodes,
        left_out=tally.left_out,
        not_kept=[it for it in dict.fromkeys(asked) if it not in tally.known],
        unknown_steps=tally.unknown_steps,
    )
