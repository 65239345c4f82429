"""The batches of the metrics job without broker, topic and generator beside it.

    python -m benchmarks.metrics_batch [--partitions 100000] [--groups 200] [--batches 12]

Hands the job's own sink the records of round after round, as ``benchmarks.metrics`` makes them:
what a batch costs when nothing else runs, and where its time goes. The store, its history and
their upkeep are real. ``--profile FILE.jfr`` has Java's flight recorder watch the second half of
the batches (needs ``jcmd``); ``--merge`` has sixteen files of a million points each made one
beside that half, as upkeep does, to see whether batches wait for it.
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
from pyspark.sql import DataFrame

from benchmarks.broker_path import cpu_seconds, resident_mb
from benchmarks.metrics_samples import Rounds
from spark_metrics.feed import FileFeed
from spark_metrics.files import Order, StoreFiles, conform
from spark_metrics.java import find_java
from spark_metrics.layout import HistoryFile
from spark_metrics.points import MINUTE, SHAPES
from spark_metrics.run import end_jvm
from spark_metrics.session import SessionSettings, build_session
from spark_metrics.sink import BatchReport, StoreSink
from spark_metrics.store import StoreWriter
from spark_metrics.upkeep import Task, Upkeep

DRIVER_MEMORY: Final = "1600m"
WARM: Final = 4
"""So many batches do not count."""
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
        upkeep = None
        for number in range(chosen.batches):
            at_ms = begin_ms + number * chosen.interval_ms
            values = [value for _, value in rounds.next(at_ms)]
            batch = cast(DataFrame, Fetched(values, first))
            first += len(values)
            if chosen.profile and number == chosen.batches // 2:
                _watch(jvm, "JFR.start", "settings=profile")
            if upkeep is not None and upkeep.take():
                upkeep = None
            if chosen.merge and number == chosen.batches // 2:
                upkeep = begin_merge(f"{folder}/beside")
            began_s, before = time.monotonic(), (cpu_seconds(jvm), cpu_seconds(os.getpid()))
            sink(batch, number)
            told.append(
                {
                    "wall_s": round(time.monotonic() - began_s, 2),
                    "jvm_cpu_s": round(cpu_seconds(jvm) - before[0], 2),
                    "python_cpu_s": round(cpu_seconds(os.getpid()) - before[1], 2),
                    **reports[-1].phases_ms,
                    "is_merging": upkeep is not None,
                    "jvm_mb": round(resident_mb(jvm)),
                    "python_mb": round(resident_mb(os.getpid())),
                }
            )
            print(json.dumps(told[-1]), flush=True)
        for is_merging in {it["is_merging"] for it in told[WARM:]}:
            some = [it for it in told[WARM:] if it["is_merging"] == is_merging]
            medians = {name: statistics.median(it[name] for it in some) for name in some[0]}
            print(json.dumps({"medians of": len(some), **medians}))
        if chosen.profile:
            _watch(jvm, "JFR.dump", f"filename={chosen.profile.absolute()}", "name=1")
        feed.remove()
        end_jvm()


def begin_merge(folder: str) -> Upkeep:
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
    upkeep = Upkeep(files)
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
    chosen = parser.parse_args()
    print(f"load before the run: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    measure(chosen)


if __name__ == "__main__":
    main()
