"""The store's reader at size: now, a partition's day, the most lagging pairs, a past moment.

    python -m benchmarks.history [--partitions 100000] [--pairs 1000000]

Writes a store as the job would have after a day: every minute of every partition and of every
pair of a group and a partition (the files of some minutes are linked, not computed: they are as
large and as many as real ones), one version of "now" with so many commits, and the fine history of
the last minutes. Then it asks what the screens ask, each question with a reader that was just made
and with one that is warm: it has read the footers, and is asked about another partition each time.
Prints a table and a JSON line. Absolute times: read them with the load that is printed; CPU is that
of all threads.
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

from spark_metrics.history.rollup import LEVEL_MAX, MERGE_FILES, MERGE_ROWS_MAX
from spark_metrics.store.files import Order
from spark_metrics.store.layout import MANIFEST, HistoryFile, encode_manifest
from spark_metrics.store.writer import Commit, StoreWriter
from spark_metrics.window.aggregates import COMMITS, HISTORY_TABLES, PARTITIONS, AggregatesReader
from spark_metrics.window.history_points import FINE, MINUTE, SHAPES, SPANS_MS
from spark_metrics.window.tables import NOW_TABLES

CLUSTER: Final = "bench"
PER_TOPIC: Final = 50
DAY_MINUTES: Final = 1_440
FINE_MS: Final = 5_000
BLOCK: Final = 1_000
FINE_POINTS: Final = 12
PER_GROUP: Final = 5_000
STRIDE: Final = 6_389
"""From one partition that is asked about to the next: in other row groups."""
Points = Callable[[range, list[int]], pa.Table]
CHARTED: Final = (
    *("in_bytes_per_s", "out_bytes_per_s", "in_records_per_s"),
    *("size_bytes", "segments", "isr_count", "high_watermark"),
)
"""What the charts of a partition show."""
OF_LAG: Final = ("lag", "time_lag_ms", "committed_offset", "end_offset")
"""What the charts of a group's partition show."""
QUESTIONS: Final = 5
"""Each is asked so often of a warm reader; the median counts."""


def topic_of(number: int) -> str:
    """The topic of a partition by its number among all."""
    return f"topic-{number // PER_TOPIC:05}"


def names(numbers: range) -> dict[str, Any]:
    """Key columns of these partitions, sorted as the job's files are."""
    return {
        "cluster": pa.array([CLUSTER] * len(numbers)),
        "topic": pa.array([topic_of(number) for number in numbers]),
        "partition": pa.array(np.array(numbers) % PER_TOPIC, pa.int32()),
    }


def blocks(count: int, times: list[int], points: Points) -> Iterator[pa.Table]:
    """The same points in pieces that fit into memory."""
    for first in range(0, count, BLOCK):
        yield points(range(first, min(first + BLOCK, count)), times)


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


def pair_points(numbers: range, times: list[int]) -> pa.Table:
    """A point per pair and time, by pair and time: each group reads so many partitions."""
    schema = HISTORY_TABLES["commit_history"]
    place = np.repeat(np.array(numbers), len(times))
    lag = pa.array(np.random.default_rng(7).integers(0, 10_000_000, len(place)))
    groups = pa.array([f"group-{number // PER_GROUP:05}" for number in numbers])
    keys = names(range(PER_GROUP))
    columns = {
        **{name: column.take(pa.array(place % PER_GROUP)) for name, column in keys.items()},
        "group_id": groups.take(pa.array(place - numbers.start)),
        "at_ms": pa.array(np.tile(times, len(numbers))),
        "committed_offset": pa.array(np.tile(times, len(numbers)) // 20 + place),
        "end_offset": pa.array(np.tile(times, len(numbers)) // 10 + place),
        **dict.fromkeys(("lag", "lag_min", "lag_max", "time_lag_ms"), lag),
        "consumed_records_per_s": pa.array(np.random.default_rng(8).random(len(place)) * 1e3),
        "readings": pa.array(np.full(len(place), 6)),
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
    of_day = {
        "partition_history": (partitions, partition_points),
        "commit_history": (pairs, pair_points),
    }
    found = {
        table: write_day(writer, table, count, at_ms, points)
        for table, (count, points) in of_day.items()
    }
    history = {**manifest.history, **found}
    (store / MANIFEST).write_bytes(encode_manifest(replace(manifest, history=history)))


def write_day(
    writer: StoreWriter, table: str, count: int, at_ms: int, points: Points
) -> tuple[HistoryFile, ...]:
    """The files of a table: minutes of the day, and the last readings."""
    begin_ms = at_ms - DAY_MINUTES * SPANS_MS[MINUTE]
    files: list[HistoryFile] = []
    real: dict[int, str] = {}
    for number, (level, first, minutes) in enumerate(cut_day(count)):
        times = [begin_ms + (first + step) * SPANS_MS[MINUTE] for step in range(minutes)]
        path = f"history/{table}-{number}.parquet"
        if minutes in real:
            # The rows of a link are at the times of the file that it links to.
            Path(writer.files.absolute(path)).symlink_to(writer.files.absolute(real[minutes]))
        else:
            real[minutes] = path
            _write_file(writer, path, table, blocks(count, times, points), count * minutes)
        files.append(
            HistoryFile(path=path, span=MINUTE, level=level, rows=count * minutes,
                        from_ms=times[0], until_ms=times[-1])
        )  # fmt: skip
    for back in range(FINE_POINTS):
        time_ms = at_ms - back * FINE_MS
        path = f"history/{table}-fine-{back}.parquet"
        _write_file(writer, path, table, blocks(count, [time_ms], points), count)
        files.append(
            HistoryFile(path=path, span=FINE, level=0, rows=count, from_ms=time_ms,
                        until_ms=time_ms)
        )  # fmt: skip
    return tuple(files)


def _write_file(
    writer: StoreWriter, path: str, table: str, pieces: Iterator[pa.Table], rows: int
) -> None:
    """Sorted points, as upkeep writes them."""
    shape = SHAPES[table]
    order = Order(key=list(shape.key), measured="at_ms", rows_max=rows)
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


def asked(
    at_ms: int, partitions: int, pairs: int
) -> dict[str, Callable[[AggregatesReader, int], Any]]:
    """What the screens ask, the n-th time."""
    day_ms = DAY_MINUTES * SPANS_MS[MINUTE]

    def partition(reader: AggregatesReader, nth: int, back_ms: int) -> pa.Table:
        number = nth * STRIDE % partitions
        return reader.partition_history(
            cluster=CLUSTER, topic=topic_of(number), partition=number % PER_TOPIC,
            since_ms=at_ms - back_ms, until_ms=at_ms, points_max=300, columns=CHARTED,
        )  # fmt: skip

    def pair(reader: AggregatesReader, nth: int) -> pa.Table:
        number = nth * STRIDE % pairs
        return reader.commit_history(
            cluster=CLUSTER, group_id=f"group-{number // PER_GROUP:05}",
            topic=topic_of(number % PER_GROUP), partition=number % PER_TOPIC,
            since_ms=at_ms - day_ms, until_ms=at_ms, points_max=300, columns=OF_LAG,
        )  # fmt: skip

    return {
        "snapshot: now_table(partitions)": lambda reader, _: reader.now_table("partitions"),
        "one partition's day": lambda reader, nth: partition(reader, nth, day_ms),
        "one partition's last minute": lambda reader, nth: partition(reader, nth, 60_000),
        "one pair's day": pair,
        "all partitions a minute ago": lambda reader, _: reader.as_of(
            cluster=CLUSTER, at_ms=at_ms - 30_000
        ),
    }


def timed_ms(call: Callable[[], Any]) -> tuple[float, float]:
    """How long it takes, and how much CPU."""
    began_s, cpu_s = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - began_s) * 1_000, (time.process_time() - cpu_s) * 1_000


def ask_all(store: Path, at_ms: int, partitions: int, pairs: int) -> dict[str, float]:
    """Ask and print; milliseconds by question, warm."""
    results: dict[str, float] = {}
    for name, ask in asked(at_ms, partitions, pairs).items():
        reader = AggregatesReader(str(store))
        first_ms, first_cpu_ms = timed_ms(partial(ask, reader, 1))
        times = sorted(timed_ms(partial(ask, reader, nth)) for nth in range(2, 2 + QUESTIONS))
        results[name], cpu_ms = times[QUESTIONS // 2]
        print(
            f"{name:<36}{first_ms:>8,.0f} ms first ({first_cpu_ms:,.0f} of CPU)"
            f"{results[name]:>8,.0f} ms warm ({cpu_ms:,.0f})"
        )
    return results


def main() -> None:
    """Write, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path, help="keep it there, or ask the one that is there")
    chosen = parser.parse_args()
    partitions, pairs = chosen.partitions, chosen.pairs
    at_ms = 1_790_000_000_000 // SPANS_MS[MINUTE] * SPANS_MS[MINUTE]
    with tempfile.TemporaryDirectory(prefix="bench-history-") as folder:
        store = chosen.store or Path(folder)
        if not (store / MANIFEST).exists():
            print(f"writing a day of {partitions:,} partitions, {pairs:,} pairs …")
            write_store(store, partitions, pairs, at_ms)
        files = len(list((store / "history").iterdir()))
        print(f"{files} files; load {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
        results = ask_all(store, at_ms, partitions, pairs)
        print(json.dumps({"partitions": partitions, "pairs": pairs, **results}))


if __name__ == "__main__":
    main()
