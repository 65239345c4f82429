"""The batches of the metrics job without broker, topic and generator beside it.

    python -m benchmarks.metrics_batch [--partitions 100000] [--groups 200] [--batches 12]

Hands the job's own sink the records of round after round, as ``benchmarks.metrics`` makes them:
what a batch costs when nothing else runs, and where its time goes. The store, its history and
their upkeep are real. ``--profile FILE.jfr`` has Java's flight recorder watch the second half of
the batches (needs ``jcmd``); ``--merge`` has sixteen files of a million points each made one
beside that half, as upkeep does, to see whether batches wait for it; ``--java`` and ``--conf``
give the JVM and Spark further options.
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

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.metrics_samples import Rounds
from benchmarks.processes import cpu_by_mode, cpu_seconds, resident_mb
from spark_metrics.arrow_tables import conform
from spark_metrics.history.rollup import HistoryMaintenance, Task
from spark_metrics.job.java import find_java
from spark_metrics.job.micro_batch import BatchReport, MicroBatchSink
from spark_metrics.job.run import end_jvm
from spark_metrics.job.spark_session import SessionSettings, build_session
from spark_metrics.store.files import Order, StoreFiles
from spark_metrics.store.layout import HistoryFile
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.history_points import MINUTE, SHAPES

WARM: Final = 4
"""So many batches do not count."""
JVM_THREADS: Final = {"C1 Comp": "compile_1", "C2 Comp": "compile_2", "VM Thread": "collect"}
"""Both compilers, and the thread that collects garbage, by the kernel's names of them."""
MERGED_FILES: Final = 16
MERGED_ROWS: Final = 1_000_000


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


class Job:
    """The job's sink over a store of its own, given a round after the other."""

    def __init__(self, session: SparkSession, rounds: Rounds, folder: str) -> None:
        self._rounds = rounds
        self._reports: list[BatchReport] = []
        self._sink = MicroBatchSink(
            StoreWriter(f"{folder}/store"),
            query_id=lambda: "bench",
            on_batch=self._reports.append,
        )
        self._records = 0
        self.jvm = int(
            session._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        )

    def batch(self, at_ms: int) -> dict[str, Any]:
        """Commit a round that began then; what that took."""
        values = [value for _, value in self._rounds.next(at_ms)]
        frame = cast(DataFrame, Fetched(values, self._records))
        self._records += len(values)
        began_s, before = time.monotonic(), self._cpu_s()
        self._sink(frame, len(self._reports))
        now = self._cpu_s()
        return {
            "wall_s": round(time.monotonic() - began_s, 2),
            **{f"{name}_cpu_s": round(now[name] - before[name], 2) for name in now},
            **self._reports[-1].phases_ms,
            "jvm_mb": round(resident_mb(self.jvm)),
            "python_mb": round(resident_mb(os.getpid())),
        }

    def _cpu_s(self) -> dict[str, float]:
        """Of both processes; of the JVM's also by what it is spent on beside the plans."""
        threads = dict.fromkeys(JVM_THREADS.values(), 0.0)
        for thread in Path(f"/proc/{self.jvm}/task").iterdir():
            name = (thread / "comm").read_text()
            for begin, role in JVM_THREADS.items():
                if name.startswith(begin):
                    threads[role] += sum(cpu_by_mode(thread / "stat"))
        return {"jvm": cpu_seconds(self.jvm), **threads, "python": cpu_seconds(os.getpid())}


def measure(chosen: argparse.Namespace, folder: str) -> None:
    """Run the batches and print a line for each, at last the medians."""
    further = dict(it.split("=", 1) for it in chosen.conf)
    settings = SessionSettings(master=chosen.master, further=further)
    os.environ["JDK_JAVA_OPTIONS"] = chosen.java
    session = build_session(settings)
    rounds = Rounds(
        partitions=chosen.partitions, groups=chosen.groups, interval_ms=chosen.interval_ms
    )
    job = Job(session, rounds, folder)
    begin_ms = time.time_ns() // 1_000_000 - chosen.batches * chosen.interval_ms
    told: list[dict[str, Any]] = []
    upkeep = None
    for number in range(chosen.batches):
        if number == chosen.batches // 2:
            if chosen.profile:
                _watch(job.jvm, "JFR.start", "settings=profile")
            if chosen.merge:
                upkeep = begin_merge(f"{folder}/beside")
        elif upkeep is not None and upkeep.take():
            upkeep = None
        took = job.batch(begin_ms + number * chosen.interval_ms)
        told.append({**took, "is_merging": upkeep is not None})
        print(json.dumps(told[-1]), flush=True)
    if chosen.profile:
        _watch(job.jvm, "JFR.dump", f"filename={chosen.profile.absolute()}", "name=1")
    print_medians(told[WARM:])


def print_medians(told: list[dict[str, Any]]) -> None:
    """Of the batches beside a merge, and of those without."""
    for is_merging in sorted({it["is_merging"] for it in told}):
        some = [it for it in told if it["is_merging"] == is_merging]
        medians = {name: statistics.median(it[name] for it in some) for name in some[0]}
        print(json.dumps({"medians of": len(some), **medians}))


def begin_merge(folder: str) -> HistoryMaintenance:
    """Have a thread make one file of history of sixteen, with a million points each."""
    files = StoreFiles(folder)
    files.make_folders("history")
    shape = SHAPES["commit_history"]
    numbers = np.arange(MERGED_ROWS)
    columns: dict[str, Any] = {
        "cluster": pa.array(["c"]).take(pa.array(np.zeros(MERGED_ROWS, np.int64))),
        "group_id": pa.array([f"group-{n:03}" for n in range(200)]).take(numbers // 5_000),
        "topic": pa.array([f"topic-{n:03}" for n in range(100)]).take(numbers // 50 % 100),
        "partition": pa.array(numbers % 50, pa.int32()),
        "lag": pa.array(numbers),
    }
    inputs = []
    for minute in range(MERGED_FILES):
        at_ms = pa.array(np.full(MERGED_ROWS, minute * 60_000))
        points = conform(pa.table({**columns, "at_ms": at_ms}), shape.schema)
        order = Order(key=list(shape.key), measured="at_ms", rows_max=MERGED_ROWS)
        path = f"history/{minute}.parquet"
        rows, (from_ms, until_ms) = files.write_sorted(path, [points], shape.schema, order=order)
        inputs.append(
            HistoryFile(
                path=path, span=MINUTE, level=0, rows=rows, from_ms=from_ms, until_ms=until_ms
            )
        )
    upkeep = HistoryMaintenance(files)
    upkeep.begin(
        [Task(table="commit_history", inputs=tuple(inputs), span=MINUTE, level=1)], version=1
    )
    return upkeep


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
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("--java", default="", help="options, one text")
    parser.add_argument("--conf", nargs="*", default=(), help="settings, NAME=VALUE")
    chosen = parser.parse_args()
    print(f"load before the run: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="bench-batch-") as folder:
        try:
            measure(chosen, folder)
        finally:
            end_jvm()


if __name__ == "__main__":
    main()
