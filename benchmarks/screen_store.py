"""A synthetic store of any size that lives: a new version every interval, as from the metrics job.

The first version is made row by row (``tests.support.store_builder``), every later one by column:
times move on, rates and offsets change, so that each version differs from the one before in every
partition.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.fold.new_points import Clocks, commit_points, partition_points, sum_points
from spark_metrics.store.writer import Commit, StoreWriter
from spark_metrics.window.tables import NOW_TABLES
from tests.support.store_builder import (
    CLUSTER,
    SyntheticSizes,
    sums_of_now,
    synthetic_rows,
    table_of,
)

PARTITIONS: Final = 50
"""Per topic."""
FACTOR: Final = 3
GROUPS: Final = 200
PAST_POINTS: Final = 20
PAST_STEP_MS: Final = 15_000
POLL_S: Final = 0.25
"""How often the page looks for a new version (``control/views/snapshots/feed.py``). Versions come
at any time between two looks, lest all wait as long as the first."""
_TIMES: Final = ("read_ms", "sampled_ms", "commit_ms", "end_read_ms", "newest_round_ms",
                 "written_ms")  # fmt: skip
_RATES: Final = ("in_records_per_s", "in_bytes_per_s", "out_bytes_per_s")


def interval_of(replicas: int) -> float:
    """Seconds between two versions: brokers sample large clusters more slowly."""
    return 1.0 if replicas <= 10_000 else 2.0 if replicas <= 40_000 else 5.0


class LivingStore:
    """Writes its first version when made; a context manager that then writes on in a thread.

    ``commits`` has the time of each commit (seconds since the epoch) by version.
    """

    def __init__(self, folder: Path, replicas: int) -> None:
        topics = max(1, replicas // FACTOR // PARTITIONS)
        self.sizes = SyntheticSizes(
            topics=topics, partitions=PARTITIONS, brokers=24, groups=min(GROUPS, topics)
        )
        self.partitions = topics * PARTITIONS
        self.replicas = self.partitions * FACTOR
        self.interval_s = interval_of(replicas)
        self.commits: list[float] = []
        self._writer = StoreWriter(str(folder))
        self._began_ms = _now_ms()
        rows = synthetic_rows(self.sizes, at_ms=self._began_ms)
        self._tables = {name: table_of(rows[name], it) for name, it in NOW_TABLES.items()}
        brokers, interval_ms = self._tables["brokers"], int(self.interval_s * 1000)
        told = pa.array(np.full(brokers.num_rows, interval_ms), pa.int64())
        self._tables["brokers"] = _with(brokers, "interval_ms", told)
        del rows
        self._dice = np.random.default_rng(7)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="living-store", daemon=True)
        past = [self._began_ms - PAST_STEP_MS * ago for ago in range(PAST_POINTS, 0, -1)]
        self._commit(self._tables, past)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def wait_for_next(self) -> None:
        """Until one more version is written."""
        count = len(self.commits)
        while len(self.commits) == count:
            time.sleep(0.01)

    def _live(self) -> None:
        while not self._stop.wait(self.interval_s + self._dice.uniform(-0.5, 0.5) * POLL_S):
            now_ms = _now_ms()
            tables = {name: self._moved(table, now_ms) for name, table in self._tables.items()}
            self._commit(tables, [now_ms])

    def _moved(self, table: pa.Table, now_ms: int) -> pa.Table:
        """The table as it may look now."""
        shift, together = now_ms - self._began_ms, self._dice.uniform(0.7, 1.3)
        for name in _TIMES:
            if name in table.column_names:
                table = _with(table, name, pc.add(table[name], shift))
        for name in _RATES:
            if name in table.column_names:
                # Each version as a whole too, so that sums change as well.
                noise = pa.array(together * self._dice.uniform(0.5, 1.5, table.num_rows))
                table = _with(table, name, pc.multiply(table[name], noise))
        if "high_watermark" in table.column_names:
            table = _with(table, "high_watermark", pc.add(table["high_watermark"], shift // 100))
        return table

    def _commit(self, tables: Mapping[str, pa.Table], at_ms: list[int]) -> None:
        self._writer.commit(
            Commit(
                query_id="screens",
                batch_id=len(self.commits),
                interval_ms=int(self.interval_s * 1000),
                watermark_ms=at_ms[-1],
                now=tables,
                history=_history(tables, at_ms),
            )
        )
        self.commits.append(time.time())


def _history(tables: Mapping[str, pa.Table], at_ms: Sequence[int]) -> dict[str, pa.Table]:
    """What the metrics job would add to history, once for each of these times."""
    partitions, commits = (_fresh(tables[name]) for name in ("partitions", "commits"))
    clocks = Clocks(before_ms={}, now_ms={CLUSTER: at_ms[-1]})
    points = {
        "partition_history": partition_points(partitions, clocks),
        "commit_history": commit_points(commits),
        **sum_points(sums_of_now({**tables, "partitions": partitions}), tables, clocks),
    }
    return {
        name: pa.concat_tables(
            [_with(table, "at_ms", pa.array(np.full(table.num_rows, at))) for at in at_ms]
        )
        for name, table in points.items()
    }


def _fresh(table: pa.Table) -> pa.Table:
    return table.append_column("is_fresh", pa.array(np.ones(table.num_rows, dtype=np.bool_)))


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), values)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
