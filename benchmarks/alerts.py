"""What rules cost: CPU of one judgement of a large cluster, without rules, with one and with many.

    python -m benchmarks.alerts [--topics 400] [--partitions 25] [--rules 200]

Each round has a snapshot of its own, as a live process has, so the tables that rules read are made
anew. Prints a table as Markdown, then one JSON line.
"""

import argparse
import json
import statistics
import tempfile
import time
from itertools import pairwise
from typing import Final

from control.alert_delivery.evaluate import reading_of
from control.alerts.machine import AlertMachine
from control.alerts.rules import AlertRule, parse_condition
from control.model.ids import ClusterId
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.snapshots.store import Aggregates, StoreReader
from tests.support.store_builder import CLUSTER, StoreBuilder, SyntheticSizes

ROUNDS: Final = 5
OPEN: Final[dict[int, int]] = {}
"""Open alerts, by the number of rules."""
CONDITIONS: Final = (
    "findings: severity:critical for 30s",
    "groups: lag>1k for 5m",
    "lags: lag>4k -topic:topic-1",
    "partitions: status:offline",
    "partitions: size>1G topic:topic-2",
    "topics: lag>10k",
    "brokers: disk>80",
    "groups: status:STOP for 1m",
)


def rules_of(count: int) -> list[AlertRule]:
    """So many rules, of all tables by turns, no two with the same filter."""
    conditions = (CONDITIONS[number % len(CONDITIONS)] for number in range(count))
    return [
        AlertRule(name=f"rule-{number}", when=it, condition=parse_condition(it))
        for number, it in enumerate(conditions)
    ]


def judged_s(found: Aggregates, rules: list[AlertRule], at_ms: int) -> tuple[float, ...]:
    """CPU seconds of the snapshot, of its judgement, and of the next one, which has no news."""
    times = [time.process_time()]
    snapshot: OperatorSnapshot = build_snapshot(
        found.tables, version=at_ms, now_ms=at_ms, cluster=ClusterId(CLUSTER)
    )
    times.append(time.process_time())
    machine = AlertMachine(rules, {})
    for is_next in (False, True):
        reading = reading_of(
            snapshot,
            rules,
            cluster="",
            at_ms=at_ms,
            open_matches=machine.open_matches(""),
            keeps_words=is_next,
        )
        assert all(it.is_known for it in reading.rules.values()), "figures are too old to judge"
        machine.handle(reading)
        times.append(time.process_time())
    OPEN[len(rules)] = len(machine.alerts)
    return tuple(until - since for since, until in pairwise(times))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=400)
    parser.add_argument("--partitions", type=int, default=25)
    parser.add_argument("--rules", type=int, default=200)
    asked = parser.parse_args()
    sizes = SyntheticSizes(
        topics=asked.topics, partitions=asked.partitions, brokers=12, groups=asked.topics
    )
    with tempfile.TemporaryDirectory() as folder:
        StoreBuilder(folder).write_synthetic(sizes, history_s=0)
        found = StoreReader(folder).now()
    assert found is not None
    at_ms, figures = int(found.tables["brokers"]["sampled_ms"][0].as_py()), {}
    rows = f"{found.tables['partitions'].num_rows:,} partitions, "
    rows += f"{found.tables['commits'].num_rows:,} commits"
    print(f"{rows}; CPU, the median of {ROUNDS}\n")
    print("| rules | open alerts | snapshot | judgement | the next |\n|---|---|---|---|---|")
    for count in (0, 1, asked.rules):
        rounds = [judged_s(found, rules_of(count), at_ms + n) for n in range(ROUNDS)]
        medians = [statistics.median(it) for it in zip(*rounds, strict=True)]
        figures[count] = [round(it, 4) for it in medians]
        cells = " | ".join(f"{it * 1000:.0f} ms" for it in medians)
        print(f"| {count} | {OPEN[count]:,} | {cells} |", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
