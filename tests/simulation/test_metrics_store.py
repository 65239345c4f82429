"""Each write of the metrics store goes wrong in each way: no reading of history is lost or doubled.

A job commits readings of a few minutes, batch by batch, and merges them. A reader looks between its
writes. Each version, whenever it is looked at, holds every reading that was committed until then
exactly once, and the job comes to commit its next batch. `make soak` takes 2,000 seeds.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from spark_metrics.store.writer import Commit, StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.errors import MetricsError
from spark_metrics.window.history_points import HISTORY_TABLES
from spark_metrics.window.tables import NOW_TABLES
from tests.simulation.store_disk import Fault, StoreDisk
from tests.support.at_once import AtOnce
from tests.support.store_builder import table_of

SEEDS: Final = [
    *(range(n, n + 6) for n in range(0, 24, 6)),
    range(157, 158),
    *(pytest.param(range(n, n + 50), marks=pytest.mark.soak) for n in range(24, 2_024, 50)),
]
T0_MS: Final = 1_800_000_000_000 // 3_600_000 * 3_600_000
BATCHES: Final = 9
FAULTS: Final = 3
WRITES: Final = 60
"""A batch has about so many."""
TRIES_MAX: Final = 6
LOOKS: Final = 0.02
KEY: Final[dict[str, Any]] = {"cluster": "c", "topic": "t"}
TABLE: Final = "topic_history"
EMPTY: Final = {name: table_of([], schema) for name, schema in NOW_TABLES.items()}


@dataclass
class Job:
    """The job on its disk; ``told`` are the times of all readings by batch."""

    store: Path
    seed: int
    told: list[list[int]] = field(default_factory=list)
    now_ms: int = T0_MS
    seen: int = -1
    """The newest batch that a reader has seen."""

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.disk = StoreDisk(root=self.store, dice=self.dice, before_write=self.maybe_look)
        self.reader = AggregatesReader(str(self.store))
        self.notices: list[str] = []
        self.writer: StoreWriter | None = None

    def start(self) -> StoreWriter:
        """A process of the job, on what lies there."""
        self.disk.restart()
        writer = StoreWriter(
            str(self.store),
            clock_ms=lambda: self.now_ms,
            steady_ms=lambda: self.now_ms,
            executor=AtOnce(),
            on_notice=self.notices.append,
        )
        writer._threads = AtOnce()  # type: ignore[assignment]  # one write after the other
        return writer

    def run(self) -> None:
        """Commit all batches, whatever becomes of some writes."""
        with self.disk.mounted():
            for number in range(BATCHES):
                self.now_ms += self.dice.choice((20_000, 60_000, 600_000))
                count = self.dice.randrange(1, 4)
                self.told.append([self.now_ms - 1_000 * n for n in range(count)])
                if number and self.dice.random() < FAULTS / BATCHES:
                    self.disk.go_wrong(self.dice.choice([*Fault]), self.dice.randrange(WRITES))
                self.commit(number)
                self.look()
                assert self.seen == number

    def commit(self, number: int) -> None:
        """Try until the batch is in the store, as the query does that is started again."""
        for _ in range(TRIES_MAX):
            try:
                if self.writer is None:
                    self.writer = self.start()
                self.writer.check()
                newest = self.writer.manifest
                if newest is None or newest.batch_id < number:
                    self.writer.commit(self.batch(number))
                return
            except OSError:
                if self.disk.died_of is not None or self.writer is None:
                    self.writer = None
                else:
                    self.writer.look_again()
                self.now_ms += 1_000
        raise AssertionError(f"batch {number} is never committed")

    def batch(self, number: int) -> Commit:
        """The readings of a batch, the same whenever it is made again."""
        rows = [{**KEY, "at_ms": at_ms, "size_bytes": number} for at_ms in self.told[number]]
        return Commit(
            query_id="q",
            batch_id=number,
            interval_ms=1_000,
            watermark_ms=self.told[number][0],
            now={**EMPTY, "health": table_of([{"batch_id": number}], NOW_TABLES["health"])},
            history={TABLE: table_of(rows, HISTORY_TABLES[TABLE])},
            bad_records=number % 2,
            bad_values=[{"value": "?"}] * (number % 2),
        )

    def maybe_look(self) -> None:
        """Look at the store between two writes, now and then."""
        if self.seen >= 0 and self.dice.random() < LOOKS:
            self.look()

    def look(self) -> None:
        """Whatever version is there holds every reading that was committed until it, once."""
        now = self.reader.now()
        assert now is not None
        number = now.tables["health"]["batch_id"][0].as_py()
        assert number >= self.seen, "a version that was there is there no more"
        self.seen = number
        asked: Any = {"since_ms": 0, "until_ms": self.now_ms + 1, "points_max": 1 << 40}
        rows = self.reader.topic_history(**KEY, **asked).to_pylist()
        found: Counter[int] = Counter()
        for row in rows:
            found[row["at_ms"] // 3_600_000] += row["readings"]
        batches = self.told[: number + 1]
        wanted = Counter(at_ms // 3_600_000 for each in batches for at_ms in each)
        assert found == wanted, f"batch {number}"
        assert self.reader.damaged_files == {}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", SEEDS, ids=lambda it: f"{it.start}-{it.stop - 1}")
def test_no_reading_is_lost_or_doubled_whatever_write_goes_wrong(
    seeds: range, tmp_path: Path
) -> None:
    for seed in seeds:
        job = Job(tmp_path / str(seed), seed)
        try:
            job.run()
        except (AssertionError, MetricsError) as error:
            story = [*job.disk.story, *job.notices]
            raise AssertionError(f"seed {seed}: {error}; {story}") from error
