"""The batches of the metrics job without broker, topic and generator beside it.

    python -m benchmarks.metrics_batch [--partitions 100000] [--groups 200] [--batches 12]

Hands the job's own sink the records of round after round, as ``benchmarks.metrics`` makes them:
what a batch costs when nothing else runs, and where its time goes. The store, its history and
their upkeep are real. ``--profile FILE.jfr`` has Java's flight recorder watch the second half of
the batches (needs ``jcmd``).
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks.broker_path import cpu_seconds, resident_mb
from benchmarks.metrics_samples import Rounds
from spark_metrics.feed import FileFeed
from spark_metrics.java import find_java
from spark_metrics.run import end_jvm
from spark_metrics.session import SessionSettings, build_session
from spark_metrics.sink import BatchReport, StoreSink
from spark_metrics.store import StoreWriter

DRIVER_MEMORY: Final = "1600m"


class Fetched:
    """Records as if Spark had fetched them from the topic: all that the sink asks a batch for."""

    def __init__(self, values: list[bytes], first: int) -> None:
        now_ms = time.time_ns() // 1_000_000
        self._rows = pa.table(
            {
                "partition": pa.array([0] * len(values), pa.int32()),
                "offset": pa.array(range(first, first + len(values)), pa.int64()),
                "timestamp_ms": pa.array([now_ms] * len(values), pa.int64()),
                "value": pa.array(values, pa.binary()),
            }
        )

    def selectExpr(self, *columns: str) -> "Fetched":
        return self

    def toArrow(self) -> pa.Table:
        return self._rows


def measure(chosen: argparse.Namespace) -> None:
    """Run the batches and print a line for each, at last their medians."""
    session = build_session(
        SessionSettings(driver_memory=DRIVER_MEMORY, is_large=True, master=chosen.master)
    )
    jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    rounds = Rounds(
        partitions=chosen.partitions, groups=chosen.groups, interval_ms=chosen.interval_ms
    )
    reports: list[BatchReport] = []
    with tempfile.TemporaryDirectory(prefix="bench-batch-") as folder:
        writer = StoreWriter(f"{folder}/store")
        feed = FileFeed(session)
        sink = StoreSink(writer, lambda: feed, query_id=lambda: "bench", on_batch=reports.append)
        told: list[dict[str, Any]] = []
        first = 0
        begin_ms = time.time_ns() // 1_000_000 - chosen.batches * chosen.interval_ms
        for number in range(chosen.batches):
            at_ms = begin_ms + number * chosen.interval_ms
            values = [value for _, value in rounds.next(at_ms)]
            batch = cast(DataFrame, Fetched(values, first))
            first += len(values)
            if chosen.profile and number == chosen.batches // 2:
                _watch(jvm, "JFR.start", "settings=profile")
            began_s, before = time.monotonic(), (cpu_seconds(jvm), cpu_seconds(os.getpid()))
            sink(batch, number)
            told.append(
                {
                    "wall_s": round(time.monotonic() - began_s, 2),
                    "jvm_cpu_s": round(cpu_seconds(jvm) - before[0], 2),
                    "python_cpu_s": round(cpu_seconds(os.getpid()) - before[1], 2),
                    **reports[-1].phases_ms,
                    "jvm_mb": round(resident_mb(jvm)),
                    "python_mb": round(resident_mb(os.getpid())),
                }
            )
            print(json.dumps(told[-1]), flush=True)
        half = told[len(told) // 2 :]
        print(json.dumps({name: statistics.median(it[name] for it in half) for name in half[0]}))
        if chosen.profile:
            _watch(jvm, "JFR.dump", f"filename={chosen.profile.absolute()}", "name=1")
        feed.remove()
        end_jvm()


def _watch(jvm: int, *command: str) -> None:
    """Have Java's flight recorder begin, or write what it saw."""
    jcmd = find_java().home / "bin" / "jcmd"
    subprocess.run([jcmd, str(jvm), *command], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--interval-ms", type=int, default=10_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--profile", type=Path)
    chosen = parser.parse_args()
    print(f"load before the run: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    measure(chosen)


if __name__ == "__main__":
    main()
