"""History as the store keeps it beside history in Delta tables, on the same rows.

    python -m benchmarks.history_delta [--partitions 10000] [--minutes 17]

Writes so many minutes of readings (one of each partition every five seconds) twice. The store
commits each batch and merges files. Delta appends once a minute, readings and minutes, and sorts
what 16 minutes left by a Z-order; batches of the minute are kept as files meanwhile. Then a day by
the minute is written twice, and one partition's day is asked for. Each part runs in a process of
its own. CPU is that of all threads; the load is printed.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.history import (
    CHARTED,
    CLUSTER,
    DAY_MINUTES,
    FINE_MS,
    PER_TOPIC,
    QUESTIONS,
    STRIDE,
    blocks,
    cut_day,
    partition_points,
    topic_of,
    write_store,
)
from spark_metrics.history.point_merge import in_order, merged_few, merged_points
from spark_metrics.history.sql import HistoryRange, bucket_ms
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.table_files import write_points
from spark_metrics.store.writer import Commit, StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.history_points import MINUTE, SHAPES, SPANS_MS
from spark_metrics.window.tables import NOW_TABLES
from tests.support.at_once import AtOnce

TABLE: Final = "partition_history"
SHAPE: Final = SHAPES[TABLE]
BEGIN_MS: Final = 1_790_000_000_000 // SPANS_MS[MINUTE] * SPANS_MS[MINUTE]
BATCHES: Final = SPANS_MS[MINUTE] // FINE_MS
COMPACTED_MINUTES: Final = 16
DAY_MS: Final = DAY_MINUTES * SPANS_MS[MINUTE]


def readings(partitions: int, number: int) -> pa.Table:
    """A batch: what each partition was read as."""
    made = partition_points(range(partitions), [BEGIN_MS + number * FINE_MS])
    dice = np.random.default_rng(number)
    fresh = {
        "high_watermark": np.arange(partitions) * 1_000 + number * 100 + dice.integers(0, 100),
        **{name: dice.random(partitions) * 1e6 for name in SHAPE.mean},
    }
    merged_alone = [f"{name}_{end}" for name in SHAPE.mean for end in ("min", "max")]
    for name in (*fresh, *merged_alone, "readings"):
        place, of = made.schema.get_field_index(name), made.schema.field(name).type
        column = pa.array(fresh[name], of) if name in fresh else pa.nulls(partitions, of)
        made = made.set_column(place, name, column)
    return made


def write_as_store(folder: Path, partitions: int, minutes: int) -> dict[str, float]:
    """CPU of a minute, by its parts."""
    now_ms = [BEGIN_MS]
    writer = StoreWriter(
        str(folder), clock_ms=lambda: now_ms[0], steady_ms=lambda: now_ms[0], executor=AtOnce()
    )
    spent_s = 0.0
    for number in range(minutes * BATCHES):
        now_ms[0] = BEGIN_MS + number * FINE_MS
        batch = Commit(
            query_id="bench",
            batch_id=number,
            interval_ms=FINE_MS,
            watermark_ms=now_ms[0],
            now={name: schema.empty_table() for name, schema in NOW_TABLES.items()},
            history={TABLE: readings(partitions, number)},
        )
        began_s = time.process_time()
        writer.commit(batch)
        spent_s += time.process_time() - began_s
    return {"cpu_ms_a_minute": spent_s * 1_000 / minutes, **_left_in(folder / "history")}


def write_as_delta(folder: Path, partitions: int, minutes: int) -> dict[str, float]:
    """The same rows."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    files = StoreFiles(str(folder))
    spent_s, held = 0.0, []
    for number in range(minutes * BATCHES):
        held.append(readings(partitions, number))
        files.make_folders("history")
        began_s = time.process_time()
        write_points(files, TABLE, held[-1], number, "0")
        if len(held) == BATCHES:
            rows = in_order(pa.concat_tables(held), list(SHAPE.key))
            points = merged_points(rows, SHAPE, SPANS_MS[MINUTE], SHAPE.schema)
            once = CommitProperties(app_transactions=[Transaction("bench", number)])
            for name, table in (("fine", rows), ("minute", points)):
                write_deltalake(
                    folder / name, table, mode="append",
                    writer_properties=_properties(), commit_properties=once,
                )  # fmt: skip
            held = []
            shutil.rmtree(folder / "history")
            if (number + 1) // BATCHES % COMPACTED_MINUTES == 0:
                for name in ("fine", "minute"):
                    table = DeltaTable(folder / name)
                    table.optimize.z_order(
                        ["topic", "partition"], target_size=1 << 30,
                        writer_properties=_properties(),
                    )  # fmt: skip
                    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        spent_s += time.process_time() - began_s
    return {"cpu_ms_a_minute": spent_s * 1_000 / minutes, **_left_in(folder)}


def _properties() -> Any:
    from deltalake import WriterProperties

    return WriterProperties(
        compression="LZ4_RAW", data_page_row_count_limit=8_192, max_row_group_size=131_072
    )


def _left_in(folder: Path) -> dict[str, float]:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    return {"files": len(sizes), "stored_mb": sum(sizes) / 1e6, "peak_mb": peak_mb}


def ask_store(folder: Path, partitions: int) -> dict[str, float]:
    """One partition's day from the store, warm."""
    write_store(folder, partitions, 10, BEGIN_MS)
    reader = AggregatesReader(str(folder))

    def ask(number: int) -> pa.Table:
        return reader.partition_history(
            cluster=CLUSTER, topic=topic_of(number), partition=number % PER_TOPIC,
            since_ms=BEGIN_MS - DAY_MS, until_ms=BEGIN_MS, points_max=300, columns=CHARTED,
        )  # fmt: skip

    return _asked({"reader": ask}, partitions)


def ask_delta(folder: Path, partitions: int) -> dict[str, float]:
    """The same from a Delta table that is sorted by key, opened anew for each question."""
    from deltalake import DeltaTable, QueryBuilder, write_deltalake

    for _, begin, minutes in cut_day(partitions):
        times = [BEGIN_MS - DAY_MS + (begin + it) * SPANS_MS[MINUTE] for it in range(minutes)]
        rows: Iterator[pa.Table] = blocks(partitions, times, partition_points)
        batches = (batch for table in rows for batch in table.to_batches())
        write_deltalake(
            folder, pa.RecordBatchReader.from_batches(SHAPE.schema, batches), mode="append",
            writer_properties=_properties(), target_file_size=4 << 30,
        )  # fmt: skip
    span = HistoryRange(since_ms=BEGIN_MS - DAY_MS, until_ms=BEGIN_MS, points_max=300)
    read = SHAPE.schema_of([*CHARTED, "readings"])

    def merged(rows: Any) -> pa.Table:
        table = pa.table(rows).select(read.names).cast(read)
        return merged_few(table, SHAPE, span, bucket_ms(span), SHAPE.schema_of(list(CHARTED)))

    def by_datafusion(number: int) -> pa.Table:
        query = QueryBuilder().register("history", DeltaTable(folder))
        where = f"topic = '{topic_of(number)}' AND partition = {number % PER_TOPIC}"
        return merged(query.execute(f"SELECT * FROM history WHERE {where}").read_all())

    def by_polars(number: int) -> pa.Table:
        is_wanted = (pl.col("topic") == topic_of(number)) & (
            pl.col("partition") == number % PER_TOPIC
        )
        lazy = pl.scan_delta(folder).filter(is_wanted).select(read.names)
        return merged(lazy.collect().to_arrow())

    return _asked({"datafusion": by_datafusion, "polars": by_polars}, partitions)


def _asked(ways: dict[str, Callable[[int], pa.Table]], partitions: int) -> dict[str, float]:
    found = {}
    for name, ask in ways.items():
        times = []
        for nth in range(QUESTIONS + 1):
            began_s = time.perf_counter()
            assert ask(nth * STRIDE % partitions).num_rows
            times.append((time.perf_counter() - began_s) * 1_000)
        found[f"{name}_day_ms"] = statistics.median(times[1:])
    return found


def apart(part: Callable[[Path], dict[str, float]]) -> dict[str, float]:
    """In a process and a folder of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-delta-") as folder,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process,
    ):
        return process.submit(part, Path(folder) / "history-of").result()


def main() -> None:
    """Write, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--minutes", type=int, default=COMPACTED_MINUTES + 1)
    chosen = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    for name, part in {
        "store writes": partial(
            write_as_store, partitions=chosen.partitions, minutes=chosen.minutes
        ),
        "Delta writes": partial(
            write_as_delta, partitions=chosen.partitions, minutes=chosen.minutes
        ),
        "store reads": partial(ask_store, partitions=chosen.partitions),
        "Delta reads": partial(ask_delta, partitions=chosen.partitions),
    }.items():
        found = {key: round(value, 1) for key, value in apart(part).items()}
        print(json.dumps({"part": name, "partitions": chosen.partitions, **found}), flush=True)


if __name__ == "__main__":
    main()
