"""Rules tried on history ring for what was planted there, once each, and for nothing else."""

from typing import Any

import pytest

from control.alert_delivery.backtest import RuleOutcome, backtest, step_for
from control.alert_delivery.evaluate import reading_of
from control.alerts.machine import AlertMachine
from control.alerts.rules import AlertRule, parse_condition
from control.model.ids import ClusterId
from control.views.snapshots.past import snapshot_at
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import (
    CLUSTER,
    StoreBuilder,
    SyntheticSizes,
    partition_history_of,
    sums_history_of,
    synthetic_rows,
)

AT_MS = 1_790_000_000_000
HERE = ClusterId(CLUSTER)
LASTS_S = 480
INCIDENTS = {"group-0": (40, 80), "group-1": (100, 220), "group-2": (300, 330)}
"""Seconds in which the lag of these groups is large."""
LARGE = 50_000


def _commit_points(commits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    points = []
    for row in commits:
        begin, end = INCIDENTS[row["group_id"]]
        for second in range(LASTS_S + 1):
            lag = LARGE if begin <= second < end else 0
            points.append(
                {
                    **{name: row[name] for name in ("cluster", "group_id", "topic", "partition")},
                    "at_ms": AT_MS - 1_000 * (LASTS_S - second),
                    "committed_offset": 100_000 - lag,
                    "end_offset": 100_000,
                    "lag": lag,
                    "consumed_records_per_s": 1.0,
                    "lag_records_per_s": 0.0,
                }
            )
    return points


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> AggregatesReader:
    folder = tmp_path_factory.mktemp("history")
    now = synthetic_rows(SyntheticSizes(topics=3, partitions=1, groups=3), at_ms=AT_MS)
    StoreBuilder(folder).write(
        now,
        partition_history=partition_history_of(now["partitions"], LASTS_S),
        commit_history=_commit_points(now["commits"]),
        **sums_history_of(now, LASTS_S, AT_MS),
    )
    return AggregatesReader(str(folder))


def _tried(reader: AggregatesReader, when: str, *, step_s: int = 10) -> RuleOutcome:
    rule = AlertRule(name="r", when=when, condition=parse_condition(when), resolve_after_ms=0)
    found = backtest(
        reader,
        [rule],
        cluster=HERE,
        name="",
        since_ms=AT_MS - LASTS_S * 1_000,
        until_ms=AT_MS,
        step_ms=step_s * 1_000,
    )
    (outcome,) = found.outcomes
    return outcome


def test_each_planted_incident_rings_once_at_its_time(reader: AggregatesReader) -> None:
    outcome = _tried(reader, "lags: lag>10k")
    rung = {
        it.subject.split()[0]: (
            ((it.fired_ms or 0) - AT_MS) // 1_000 + LASTS_S,
            ((it.resolved_ms or 0) - AT_MS) // 1_000 + LASTS_S,
        )
        for it in outcome.episodes
    }
    assert len(outcome.episodes) == 3
    assert rung == INCIDENTS


def test_an_incident_that_is_shorter_than_the_rule_asks_does_not_ring(
    reader: AggregatesReader,
) -> None:
    outcome = _tried(reader, "lags: lag>10k for 1m")
    assert [it.subject.split()[0] for it in outcome.episodes] == ["group-1"]


def test_figures_that_history_does_not_hold_are_named(reader: AggregatesReader) -> None:
    assert _tried(reader, "lags: member:client-1", step_s=300).not_kept == ["member"]
    assert _tried(reader, "lags: lag>10k", step_s=300).not_kept == []


def test_the_same_rule_rings_live_within_one_step_of_the_trial(reader: AggregatesReader) -> None:
    """Live it looks each second; the trial looks each ten."""
    when = "lags: lag>10k"
    tried = {it.subject: it.fired_ms for it in _tried(reader, when).episodes}
    rule = AlertRule(name="r", when=when, condition=parse_condition(when), resolve_after_ms=0)
    machine, rung = AlertMachine([rule], {}), dict[str, int]()
    for second in range(30, 50):
        at_ms = AT_MS - 1_000 * (LASTS_S - second)
        snapshot = snapshot_at(reader, cluster=HERE, at_ms=at_ms)
        assert snapshot is not None
        for alert in machine.handle(reading_of(snapshot, [rule], cluster="", at_ms=at_ms)):
            rung.setdefault(alert.subject, alert.fired_ms or 0)
    ((subject, fired_ms),) = rung.items()
    assert 0 <= (tried[subject] or 0) - fired_ms < 10_000


def test_a_long_stretch_is_looked_at_in_whole_seconds() -> None:
    assert step_for(0, 60_000) == 1_000
    assert step_for(0, 7 * 86_400_000) % 1_000 == 0
    assert 400_000 <= step_for(0, 7 * 86_400_000) <= 405_000
