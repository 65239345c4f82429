"""The store's reader at size: now, a partition's day, the most lagging pairs, a past moment.

    python -m benchmarks.history [--partitions 100000] [--pairs 1000000]

Writes a store as the job would have after a day: every minute of every partition (the files of
some minutes are linked, not computed: they are as large and as many as real ones), one version of
"now" with so many commits, and the fine history of the last minutes. Then it asks what the
screens ask, each question with a reader that was just made and with one that is warm. Prints a
table and a JSON line. Absolute times: read them with the load that is printed.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_metrics.aggregates import COMMITS, HISTORY_TABLES, PARTITIONS, AggregatesReader
from spark_metrics.files import Order
from spark_metrics.layout import MANIFEST, HistoryFile, encode_manifest
from spark_metrics.points import FINE, MINUTE, SHAPES, SPANS_MS
from spark_metrics.store import Commit, StoreWriter
from spark_metrics.tables import NOW_TABLES
from spark_metrics.upkeep import LEVEL_MAX, MERGE_FILES, MERGE_ROWS_MAX

CLUSTER: Final = "bench"
PER_TOPIC: Final = 50
DAY_MINUTES: Final = 1_440
FINE_MS: Final = 5_000
BLOCK: Final = 1_000
FINE_POINTS: Final = 12
CHARTED: Final = (
    *("in_bytes_per_s", "out_bytes_per_s", "in_records_per_s"),
    *("size_bytes", "segments", "isr_count", "high_watermark"),
)
"""What the charts of a partition show."""
QUESTIONS: Final = 5
"""Each is asked so often of a warm reader; the median counts."""


def names(numbers: range) -> dict[str, Any]:
    """Key columns of these partitions, sorted as the job's files are."""
    return {
        "cluster": pa.array([CLUSTER] * len(numbers)),
        "topic": pa.array([f"topic-{number // PER_TOPIC:05}" for number in numbers]),
        "partition": pa.array(np.array(numbers) % PER_TOPIC, pa.int32()),
    }


def blocks(partitions: int, times: list[int]) -> Iterator[pa.RecordBatch]:
    """The same points in pieces that fit into memory."""
    for first in range(0, partitions, BLOCK):
        numbers = range(first, min(first + BLOCK, partitions))
        yield from partition_points(numbers, times).combine_chunks().to_batches()


def table_of(columns: Mapping[str, Any], schema: Any) -> pa.Table:
    """A table of this schema; what is not given is null."""
    rows = len(next(iter(columns.values())))
    return pa.table(
        [
            columns[it.name].cast(it.type) if it.name in columns else pa.nulls(rows, it.type)
            for it in schema
        ],
        schema=schema,
    )


def partition_points(numbers: range, times: list[int]) -> pa.Table:
    """A point per partition and time, by partition and time."""
    schema = HISTORY_TABLES["partition_history"]
    count = len(numbers)
    place = np.repeat(np.arange(count), len(times))
    dice = np.random.default_rng(len(times))
    keys = {name: column.take(pa.array(place)) for name, column in names(numbers).items()}
    rate = pa.array(dice.random(len(place)) * 1e6)
    columns = {
        **keys,
        "at_ms": pa.array(np.tile(times, count)),
        "leader": pa.array(101 + place % 3),
        "replicas": pa.array(["101 102 103", "102 103 101", "103 101 102"]).take(
            pa.array(place % 3)
        ),
        "isr": pa.array(["101 102 103"] * len(place)),
        "isr_count": pa.array(np.full(len(place), 3)),
        "replicas_count": pa.array(np.full(len(place), 3)),
        "high_watermark": pa.array(np.tile(times, count) // 20 + place),
        "size_bytes": pa.array(np.tile(times, count) + place),
        **dict.fromkeys(("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s"), rate),
        "in_bytes_per_s_min": rate,
        "in_bytes_per_s_max": rate,
        "readings": pa.array(np.full(len(place), 12)),
    }
    return table_of(columns, schema)


def now_of(partitions: int, pairs: int, at_ms: int) -> dict[str, pa.Table]:
    """The large tables of now."""
    numbers = np.arange(partitions)
    ids = pa.array([[101, 102, 103]] * partitions)
    dice = np.random.default_rng(7)
    of_pair = np.arange(pairs) % partitions
    keys = {
        name: column.take(pa.array(of_pair)) for name, column in names(range(partitions)).items()
    }
    empty = {name: schema.empty_table() for name, schema in NOW_TABLES.items()}
    return {
        **empty,
        "partitions": table_of(
            {
                **names(range(partitions)),
                "leader": pa.array(101 + numbers % 3),
                **dict.fromkeys(("replicas", "isr"), ids),
                "high_watermark": pa.array(numbers * 1_000),
                "size_bytes": pa.array(numbers * 100_000),
                "in_bytes_per_s": pa.array(dice.random(partitions) * 1e6),
                "read_ms": pa.array(np.full(partitions, at_ms)),
            },
            PARTITIONS,
        ),
        "commits": table_of(
            {
                **keys,
                "group_id": pa.array([f"group-{n // partitions:03}" for n in range(pairs)]),
                "committed_offset": pa.array(of_pair * 900),
                "end_offset": pa.array(of_pair * 1_000),
                "lag": pa.array(dice.integers(0, 10_000_000, pairs)),
                "read_ms": pa.array(np.full(pairs, at_ms)),
            },
            COMMITS,
        ),
    }


def write_store(store: Path, partitions: int, pairs: int, at_ms: int) -> None:
    """A store as it is after a day."""
    writer = StoreWriter(str(store))
    manifest = writer.commit(
        Commit(
            query_id="bench",
            batch_id=0,
            interval_ms=FINE_MS,
            now=now_of(partitions, pairs, at_ms),
            history={},
        )
    )
    begin_ms = at_ms - DAY_MINUTES * SPANS_MS[MINUTE]
    files = []
    for number, (level, first, minutes) in enumerate(cut_day(partitions)):
        from_ms = begin_ms + first * SPANS_MS[MINUTE]
        rows = _write(writer, store, number, (partitions, from_ms, minutes))
        until_ms = from_ms + (minutes - 1) * SPANS_MS[MINUTE]
        files.append(
            HistoryFile(path=f"history/{number}.parquet", span=MINUTE, level=level, rows=rows,
                        from_ms=from_ms, until_ms=until_ms)
        )  # fmt: skip
    for back in range(FINE_POINTS):
        time_ms = at_ms - back * FINE_MS
        path = f"history/fine-{back}.parquet"
        _write_file(writer, path, partitions, [time_ms])
        files.append(
            HistoryFile(path=path, span=FINE, level=0, rows=partitions, from_ms=time_ms,
                        until_ms=time_ms)
        )  # fmt: skip
    history = {**manifest.history, "partition_history": tuple(files)}
    (store / MANIFEST).write_bytes(encode_manifest(replace(manifest, history=history)))


def _write(writer: StoreWriter, store: Path, number: int, shape: tuple[int, int, int]) -> int:
    """One file of minutes; the rows of a link are at the times of the file that it links to."""
    partitions, from_ms, minutes = shape
    kept = store / f"minutes-{minutes}.parquet"
    if not kept.exists() or number == 0:
        times = [from_ms + step * SPANS_MS[MINUTE] for step in range(minutes)]
        _write_file(writer, kept.name, partitions, times)
    (store / "history" / f"{number}.parquet").symlink_to(kept)
    return partitions * minutes


def _write_file(writer: StoreWriter, path: str, partitions: int, times: list[int]) -> None:
    """Points of all partitions at these times, as upkeep writes them."""
    shape = SHAPES["partition_history"]
    pieces = map(pa.Table.from_batches, ([each] for each in blocks(partitions, times)))
    order = Order(key=list(shape.key), measured="at_ms", rows_max=partitions * len(times))
    writer.files.write_sorted(path, pieces, shape.schema, order=order)


def cut_day(partitions: int) -> list[tuple[int, int, int]]:
    """Level, first minute and minutes of each file that a day of upkeep leaves."""
    found, first = [], 0
    for level in range(LEVEL_MAX, -1, -1):
        minutes = MERGE_FILES**level
        if partitions * minutes > MERGE_ROWS_MAX:
            continue
        last = DAY_MINUTES if level == 0 else DAY_MINUTES - MERGE_FILES**level // 2
        while first + minutes <= last:
            found.append((level, first, minutes))
            first += minutes
    return found


def asked(store: Path, at_ms: int) -> dict[str, Callable[[AggregatesReader], Any]]:
    """What the screens ask."""
    one = {"cluster": CLUSTER, "topic": "topic-00700", "partition": 7}
    day_ms = DAY_MINUTES * SPANS_MS[MINUTE]
    return {
        "snapshot: now_table(partitions)": lambda reader: reader.now_table("partitions"),
        "one partition's day": lambda reader: reader.partition_history(
            **one, since_ms=at_ms - day_ms, until_ms=at_ms, points_max=300, columns=CHARTED
        ),
        "one partition's last minute": lambda reader: reader.partition_history(
            **one, since_ms=at_ms - 60_000, until_ms=at_ms, points_max=300, columns=CHARTED
        ),
        "top 50 of all lagging pairs": lambda reader: reader.top_commits(cluster=CLUSTER, count=50),
        "all partitions a minute ago": lambda reader: reader.as_of(
            cluster=CLUSTER, at_ms=at_ms - 30_000
        ),
    }


def timed_ms(call: Callable[[], Any]) -> float:
    """How long it takes."""
    began_s = time.perf_counter()
    call()
    return (time.perf_counter() - began_s) * 1_000


def main() -> None:
    """Write, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    chosen = parser.parse_args()
    at_ms = 1_790_000_000_000 // SPANS_MS[MINUTE] * SPANS_MS[MINUTE]
    with tempfile.TemporaryDirectory(prefix="bench-history-") as folder:
        store = Path(folder)
        print(f"writing a day of {chosen.partitions:,} partitions, {chosen.pairs:,} pairs …")
        write_store(store, chosen.partitions, chosen.pairs, at_ms)
        files = len(list((store / "history").iterdir()))
        print(f"{files} files; load {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
        results: dict[str, float] = {}
        for name, ask in asked(store, at_ms).items():
            reader = AggregatesReader(str(store))
            first_ms = timed_ms(partial(ask, reader))
            times = [timed_ms(partial(ask, reader)) for _ in range(QUESTIONS)]
            results[name] = sorted(times)[QUESTIONS // 2]
            print(f"{name:<36}{first_ms:>10,.0f} ms first{results[name]:>10,.0f} ms warm")
        print(json.dumps({"partitions": chosen.partitions, "pairs": chosen.pairs, **results}))


if __name__ == "__main__":
    main()
