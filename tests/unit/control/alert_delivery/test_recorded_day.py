"""A recorded day with three planted incidents: each rings once, and live at the same time."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from control.alert_delivery.backtest import backtest
from control.alert_delivery.evaluate import reading_of
from control.alerts.machine import AlertMachine
from control.alerts.rules import AlertRule, parse_condition
from control.model.ids import ClusterId
from control.views.snapshots.past import snapshots_at
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.history_points import HISTORY_TABLES
from tests.support.store_builder import (
    CLUSTER,
    StoreBuilder,
    SyntheticSizes,
    commit_history_of,
    partition_history_of,
    synthetic_rows,
)

pytestmark = pytest.mark.thorough

HERE: Final = ClusterId(CLUSTER)
AT_MS: Final = 1_790_000_000_000
DAY_S: Final = 86_400
EVERY_S: Final = 10
STEP_S: Final = 300
TIMES: Final = np.arange(0, DAY_S + 1, EVERY_S)
STUCK: Final = (20_000, 23_000)
FULL: Final = (40_000, 43_000)
OFFLINE: Final = (70_000, 71_000)
"""Seconds of the day: a group is stuck, a disk is full, a partition has no leader."""
Rung = dict[str, list[tuple[str, int, int]]]
RULES: Final = [
    AlertRule(name=name, when=when, condition=parse_condition(when))
    for name, when in (
        ("late", "lags: lag>10k for 5m"),
        ("disk", "findings: kind:disk for 3m"),
        ("offline", "partitions: status:offline"),
        ("critical", "findings: severity:critical kind:offline"),
    )
]


def _within(span: tuple[int, int]) -> Any:
    return (span[0] <= TIMES) & (span[1] > TIMES)


def _repeated(row: dict[str, Any], table: str, **changes: Any) -> pa.Table:
    """A point each ten seconds of the day, as ``row`` but for what changes."""
    columns = {
        item.name: pa.array(changes[item.name], item.type)
        if item.name in changes
        else pa.array([row.get(item.name)] * len(TIMES), item.type)
        for item in HISTORY_TABLES[table]
        if item.name != "at_ms"
    }
    columns["at_ms"] = pa.array(AT_MS - 1_000 * (DAY_S - TIMES))
    return pa.table(columns).select(HISTORY_TABLES[table].names)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> AggregatesReader:
    folder = tmp_path_factory.mktemp("day")
    now = synthetic_rows(SyntheticSizes(topics=2, partitions=1, groups=2), at_ms=AT_MS)
    lag = np.where(_within(STUCK), 50_000, 0)
    usable = np.where(_within(FULL), 5 << 30, 60 << 30)
    leader = np.where(_within(OFFLINE), -1, now["partitions"][0]["leader"])
    partitions = partition_history_of(now["partitions"], 0)
    commits = [
        {**it, "lag": 0, "committed_offset": it["end_offset"], "stuck_since_ms": None}
        for it in commit_history_of(now["commits"], 0)
    ]
    StoreBuilder(folder).write(
        now,
        partition_history=pa.concat_tables(
            [
                _repeated(partitions[0], "partition_history", leader=leader),
                _repeated(partitions[1], "partition_history"),
            ]
        ),
        commit_history=pa.concat_tables(
            [
                _repeated(
                    commits[0], "commit_history", lag=lag, committed_offset=100_000 - lag,
                    end_offset=np.full(len(TIMES), 100_000),
                ),
                _repeated(commits[1], "commit_history"),
            ]
        ),
        broker_history=pa.concat_tables(
            [
                _repeated(row, "broker_history", **({"disk_usable_bytes": usable} if not n else {}))
                for n, row in enumerate(now["brokers"])
            ]
        ),
    )  # fmt: skip
    return AggregatesReader(str(folder))


@pytest.fixture(scope="module")
def rung(reader: AggregatesReader) -> Rung:
    """By rule: subject, second of the day at which it rang, and at which it resolved."""
    found = backtest(
        reader, RULES, cluster=HERE, name="", since_ms=AT_MS - 1_000 * DAY_S, until_ms=AT_MS,
        step_ms=1_000 * STEP_S,
    )  # fmt: skip
    return {
        it.rule.name: [
            (each.subject, _second(each.fired_ms), _second(each.resolved_ms))
            for each in it.episodes
        ]
        for it in found.outcomes
    }


def _second(at_ms: int | None) -> int:
    return ((at_ms or 0) - AT_MS) // 1_000 + DAY_S


def _live(reader: AggregatesReader, rule: AlertRule, around: tuple[int, int]) -> int:
    """When it rings for who looks each ten seconds."""
    machine = AlertMachine([rule], {})
    seconds = range(around[0] - 20, around[0] + 400, EVERY_S)
    moments = [AT_MS - 1_000 * (DAY_S - it) for it in seconds]
    for at_ms, snapshot in zip(
        moments, snapshots_at(reader, cluster=HERE, moments=moments), strict=True
    ):
        assert snapshot is not None
        machine.handle(reading_of(snapshot, [rule], cluster="", at_ms=at_ms))
        for alert in machine.alerts.values():
            if alert.fired_ms is not None:
                return _second(alert.fired_ms)
    raise AssertionError(f"{rule.name} did not ring")


def test_each_incident_of_the_day_rings_once_and_nothing_else(
    rung: Rung,
) -> None:
    assert {name: [it[0] for it in found] for name, found in rung.items()} == {
        "late": ["group-0 topic-0-0"],
        "disk": ["disk broker 101"],
        "offline": ["topic-0-0"],
        "critical": ["offline"],
    }
    for name, (begins, ends), for_s in (
        ("late", STUCK, 300), ("disk", FULL, 180), ("offline", OFFLINE, 0),
        ("critical", OFFLINE, 0),
    ):  # fmt: skip
        ((_, fired, resolved),) = rung[name]
        assert begins + for_s <= fired < begins + for_s + 2 * STEP_S
        assert ends <= resolved < ends + STEP_S


@pytest.mark.parametrize(("place", "incident"), [(0, STUCK), (1, FULL), (2, OFFLINE)])
def test_the_same_rule_rings_live_within_one_look_of_the_trial(
    reader: AggregatesReader,
    rung: Rung,
    place: int,
    incident: tuple[int, int],
) -> None:
    rule = RULES[place]
    # A trial counts the time between two looks only where both match.
    looks = 1 + (rule.condition.for_ms > 0)
    ((_, tried, _),) = rung[rule.name]
    assert 0 <= tried - _live(reader, rule, incident) <= looks * STEP_S
