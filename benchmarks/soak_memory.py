"""Memory of everything that `partiscope up --bootstrap` runs, over half an hour on real Kafka.

    python -m benchmarks.soak_memory [--minutes 30] [--warm-minutes 8] [--interval-ms 1000]
                                     [--csv FILE]

Three nodes of Kafka with 600 partitions of three replicas, a little traffic, eight groups that
commit, and the product as a user starts it. The resident memory of each process is noted every
30 s. Prints per process what it had after warming up and at the end, and the slope in between:
MiB an hour by least squares, with its standard error, so that a slope within two of them is none.
A JVM takes the heap that it was allowed before it collects, so its slope tells least: of the
metrics job's, what it holds after a collection is told too, when warm and at the end (by `jcmd`).
"""

import argparse
import csv
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import NewTopic, TopicPartition

from benchmarks.java_heap import Held, held_after_collecting
from benchmarks.processes import cpu_seconds, resident_mib
from tests.support.installation import Installation
from tests.support.kafka_oracle import QUICK_START, KafkaCluster, ready_admin

TOPICS: Final = {"large": 300, "middle": 180, "small": 90, "tiny": 30}
GROUPS: Final = 8
SAMPLE_S: Final = 30.0
SETTLE_S: Final = 20.0
BEAT_S: Final = 1.0
RECORDS_PER_BEAT: Final = 20
JVM: Final = "metrics, JVM"
PARTS: Final = {
    "-m spark_metrics": "metrics, Python",
    "spark.driver": JVM,
    "SparkSubmit": JVM,
    "collect": "collector",
    "executor": "executor",
    "dashboard": "page",
    "broker-": "bus broker",
    "broker": "bus broker",
    " up ": "supervisor",
}
"""Words of a command line, and what its process is; the first that fits counts."""


@dataclass
class Series:
    """Resident memory of one process over time."""

    at_s: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)

    def slope(self, since_s: float) -> tuple[float, float]:
        """MiB an hour since then, and its standard error."""
        kept = [(at, mib) for at, mib in zip(self.at_s, self.mib, strict=True) if at >= since_s]
        if len(kept) < 4:
            return float("nan"), float("nan")
        hours, values = np.array(kept).T / np.array([[3_600.0], [1.0]])
        (slope, _), covariance = np.polyfit(hours, values, 1, cov=True)
        return float(slope), float(covariance[0, 0] ** 0.5)


class Traffic:
    """A little of everything: records, and groups that commit, one step per beat."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self._groups = [
            Consumer({"bootstrap.servers": bootstrap, "group.id": f"group-{n}", "log_level": 0})
            for n in range(GROUPS)
        ]
        self._beats = 0

    def beat(self) -> None:
        """Some records, and one group's commits."""
        topic = list(TOPICS)[self._beats % len(TOPICS)]
        for number in range(RECORDS_PER_BEAT):
            partition = (self._beats * 7 + number) % TOPICS[topic]
            self._producer.produce(topic, b"x" * 100, partition=partition)
        self._producer.poll(0)
        group = self._groups[self._beats % GROUPS]
        offsets = [TopicPartition("tiny", n, self._beats // GROUPS) for n in range(10)]
        group.commit(offsets=offsets, asynchronous=True)
        self._beats += 1

    def close(self) -> None:
        self._producer.flush(10)
        for group in self._groups:
            group.close()


@contextmanager
def busy(bootstrap: str) -> Iterator[Traffic]:
    """Topics, and the traffic on them."""
    admin = ready_admin(**{"bootstrap.servers": bootstrap})
    for name, partitions in TOPICS.items():
        admin.create_topics([NewTopic(name, partitions, 3)])[name].result(60)
    traffic = Traffic(bootstrap)
    try:
        yield traffic
    finally:
        traffic.close()


def part_of(command: str) -> str:
    """What a child of `up` is, by its command line."""
    return next((part for words, part in PARTS.items() if words in command), command[:60])


def lasting(up: Installation) -> dict[int, str]:
    """The children of `up` that are still there after a while, and what each is."""
    early = up.children()
    time.sleep(SETTLE_S)
    return {
        pid: part_of(command)
        for pid, command in up.children().items()
        if pid in early and "<defunct>" not in command
    }


def jvm_heap(processes: Mapping[int, str]) -> Held | None:
    """What the metrics job's JVM holds after a collection; None where nobody can ask it."""
    pids = [pid for pid, part in processes.items() if part == JVM]
    return held_after_collecting(pids[0]) if pids else None


def watch(
    processes: Mapping[int, str], traffic: Traffic, minutes: tuple[float, float], target: Path
) -> tuple[dict[int, Series], list[Held | None]]:
    """A reading of each process every 30 s, into the file as well, while traffic goes on.

    And what the JVM holds, after each of these minutes; the last ends it.
    """
    found: dict[int, Series] = {pid: Series() for pid in processes}
    held: list[Held | None] = []
    begun_s = time.monotonic()
    next_s = begun_s
    with target.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["seconds", "pid", "part", "rss_mib"])
        while len(held) < len(minutes):
            traffic.beat()
            if time.monotonic() >= begun_s + minutes[len(held)] * 60:
                held.append(jvm_heap(processes))
            if time.monotonic() >= next_s:
                next_s += SAMPLE_S
                at_s = time.monotonic() - begun_s
                for pid, series in found.items():
                    series.at_s.append(at_s)
                    series.mib.append(resident_mib(pid))
                    rows.writerow([round(at_s), pid, processes[pid], round(series.mib[-1], 2)])
                file.flush()
            time.sleep(BEAT_S)
    return found, held


def summary(
    processes: Mapping[int, str], found: Mapping[int, Series], warm_s: float
) -> list[dict[str, Any]]:
    """One row per process: when warm, at the end, slope and its error."""
    rows = []
    for pid, series in sorted(found.items(), key=lambda item: processes[item[0]]):
        slope, error = series.slope(warm_s)
        warm = next(mib for at, mib in zip(series.at_s, series.mib, strict=True) if at >= warm_s)
        rows.append(
            {
                "part": processes[pid],
                "warm_mib": round(warm, 1),
                "end_mib": round(series.mib[-1], 1),
                "mib_per_hour": round(slope, 1),
                "error": round(error, 1),
            }
        )
    return rows


def main() -> None:
    """Run, and print a table and a JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm-minutes", type=float, default=8.0)
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between samples")
    parser.add_argument("--csv", type=Path, default=Path("soak_memory.csv"))
    asked = parser.parse_args()
    os.environ["PARTISCOPE_COLLECT__INTERVAL_MS"] = str(asked.interval_ms)
    flags = (*QUICK_START, "-Xmx256m")
    with (
        tempfile.TemporaryDirectory(prefix="soak-memory-") as folder,
        KafkaCluster(Path(folder) / "kafka", jvm_flags=flags) as cluster,
        busy(cluster.bootstrap) as traffic,
        Installation(Path(folder) / "up", flags=("--bootstrap", cluster.bootstrap)) as up,
    ):
        up.wait_ready()
        processes = lasting(up)
        before_s, begun_s = sum(map(cpu_seconds, processes)), time.monotonic()
        marks = (asked.warm_minutes, asked.minutes)
        found, held = watch(processes, traffic, marks, asked.csv)
        cpu = (sum(map(cpu_seconds, processes)) - before_s) / (time.monotonic() - begun_s)
        rows = summary(processes, found, asked.warm_minutes * 60)
        restarts = [line for line in up.lines if "again" in line]
    print(f"load {os.getloadavg()[0]:.2f}; all of it took {100 * cpu:.0f} % of a core")
    for row in rows:
        print(
            "{part:<20}{warm_mib:>9} MiB{end_mib:>9} MiB{mib_per_hour:>9} ± {error}".format(**row)
        )
    for minutes, each in zip(marks, held, strict=True):
        print(f"metrics, JVM after {minutes:g} minutes: {each or 'nobody to ask: no jcmd'}")
    print(*restarts, sep="\n")
    print(json.dumps({"benchmark": "soak_memory", "minutes": asked.minutes, "rows": rows}))


if __name__ == "__main__":
    main()
