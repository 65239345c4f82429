"""The metrics job behind a topic: how many times faster than real time it catches up.

    python -m benchmarks.metrics_backlog [--partitions 10000] [--groups 0] [--rounds 600]

The store's only version is a day old. The topic holds so many rounds since then, a second apart,
which are written before the job starts. Tells event time per second, and per second of CPU of the
driver and its JVM, once the first batch is over: on a busy machine only the latter says anything.
The job's own rate, which page, terminal and ``status`` show, stands beside it.
"""

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.metrics_samples import TOPIC, Rounds
from benchmarks.processes import cpu_seconds
from spark_metrics.store.writer import Commit, StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.tables import HEALTH
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.metrics_job import MetricsJob

DAY_MS: Final = 86_400_000
INTERVAL_MS: Final = 1_000
TIMEOUT_S: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How far the job was at one moment."""

    at_s: float
    cpu_s: float
    newest_ms: int
    rate: float | None
    """What the job tells of itself."""


def write_backlog(bootstrap: str, made: Rounds, rounds: int, begin_ms: int) -> None:
    """Write all rounds, with the times at which they would have come."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "zstd"})
    for number in range(rounds):
        at_ms = begin_ms + number * INTERVAL_MS
        for broker, value in made.next(at_ms):
            producer.produce(TOPIC, value, partition=broker % 3, timestamp=at_ms)
        producer.flush(60)


def write_old_version(store: str, at_ms: int) -> None:
    """The store as a job has left it then that had read nothing."""
    StoreWriter(store).commit(
        Commit(
            query_id="old",
            batch_id=0,
            interval_ms=INTERVAL_MS,
            at_ms=at_ms,
            now={"health": HEALTH.empty_table()},
            history={},
        )
    )


def look(job: MetricsJob) -> Look | None:
    """How far the job is now; None before its first batch."""
    found = AggregatesReader(job.store).now_table("health").to_pylist()
    if not found:
        return None
    assert job.process is not None
    pids = [job.process.pid, *job.jvms()]
    return Look(
        at_s=time.monotonic(),
        cpu_s=sum(cpu_seconds(pid) for pid in pids if Path(f"/proc/{pid}").exists()),
        newest_ms=found[0]["newest_round_ms"],
        rate=found[0]["catch_up_rate"],
    )


def measure(partitions: int, groups: int, rounds: int, folder: Path) -> None:
    """Run the job over the backlog and print how it went."""
    begin_ms = time.time_ns() // 1_000_000 - DAY_MS
    newest_ms = begin_ms + (rounds - 1) * INTERVAL_MS
    with LocalCluster(folder / "cluster", brokers=1, overrides=NOBODY_DIES) as cluster:
        made = Rounds(partitions=partitions, groups=groups, interval_ms=INTERVAL_MS)
        write_backlog(cluster.bootstrap, made, rounds, begin_ms)
        job = MetricsJob(
            bootstrap=cluster.bootstrap,
            base_dir=folder / "job",
            flags=("--topic", TOPIC, "--say-batches"),
            timeout_s=TIMEOUT_S,
        )
        write_old_version(job.store, begin_ms)
        job.start()
        try:
            looks: list[Look] = []

            def is_over() -> bool:
                found = look(job)
                if found is not None and (not looks or found.newest_ms > looks[-1].newest_ms):
                    looks.append(found)
                    print(found, flush=True)
                return bool(looks) and looks[-1].newest_ms >= newest_ms

            job.wait_until(is_over, "caught up")
            report(looks)
            job.end(signal.SIGTERM)
        finally:
            job.close()


def report(looks: Sequence[Look]) -> None:
    """Print the rates between the first and the last look."""
    first, last = looks[0], looks[-1]
    event_s = (last.newest_ms - first.newest_ms) / 1_000
    cpu_s, took_s = last.cpu_s - first.cpu_s, last.at_s - first.at_s
    print(f"{event_s:,.0f} s of samples in {took_s:.1f} s, with {cpu_s:.1f} s of CPU")
    print(f"{event_s / took_s:.1f} times real time, {event_s / cpu_s:.1f} times per core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=600)
    chosen = parser.parse_args()
    print(f"load before the run: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="bench-backlog-") as folder:
        measure(chosen.partitions, chosen.groups, chosen.rounds, Path(folder))


if __name__ == "__main__":
    main()
