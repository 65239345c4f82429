"""Merged history tells what the readings told, whatever is late, killed or spoilt meanwhile."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spark_metrics.history.rollup import (
    INPUTS_MAX,
    LEVEL_MAX,
    MERGE_FILES,
    Done,
    adopted,
    due_tasks,
)
from spark_metrics.history.sql import HistoryRange
from spark_metrics.read.file_selection import files_for
from spark_metrics.store.layout import GRACE_MS, HistoryFile
from spark_metrics.store.writer import RETENTION_MS, Commit, StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.history_points import FINE, HISTORY_TABLES, HOUR, MINUTE, SPANS_MS
from spark_metrics.window.tables import NOW_TABLES
from tests.support.at_once import AtOnce, Never
from tests.support.store_builder import table_of

BEGIN_MS = 1_790_000_000_000 // SPANS_MS[HOUR] * SPANS_MS[HOUR]
STEP_MS = 30_000
KEY = {"cluster": "c", "topic": "t"}
Row = dict[str, Any]


class Job:
    """Commits readings of two partitions, at a clock of its own."""

    def __init__(
        self, store: Path, *, now_ms: int = BEGIN_MS, retention_ms: int = RETENTION_MS
    ) -> None:
        self.store = store
        self.retention_ms = retention_ms
        self.now_ms = now_ms
        self.readings: list[Row] = []
        self.dice = Random(7)
        self.notices: list[str] = []
        self.batch_id = -1
        self.query_id = "q"
        self.start(AtOnce())

    def start(self, executor: Executor) -> None:
        """As a process that is started on what is there."""
        self.writer = StoreWriter(
            str(self.store),
            retention_ms=self.retention_ms,
            clock_ms=lambda: self.now_ms,
            steady_ms=lambda: self.now_ms,
            executor=executor,
            on_notice=self.notices.append,
        )

    def commit(self, *at_ms: int) -> None:
        """A batch with a reading of each partition at each of these times."""
        rows = [self._reading(partition, at) for at in at_ms for partition in (0, 1)]
        self.readings += rows
        self.batch_id += 1
        self.writer.commit(
            Commit(
                query_id=self.query_id,
                batch_id=self.batch_id,
                interval_ms=STEP_MS,
                watermark_ms=self.now_ms,
                now={name: table_of([], schema) for name, schema in NOW_TABLES.items()},
                history={"partition_history": table_of(rows, HISTORY_TABLES["partition_history"])},
            )
        )

    def _reading(self, partition: int, at_ms: int) -> Row:
        rate = None if self.dice.random() < 0.02 else self.dice.random() * 1_000
        end = at_ms - BEGIN_MS + partition
        return {
            **KEY,
            "partition": partition,
            "at_ms": at_ms,
            "leader": 101,
            "high_watermark": end,
            "in_bytes_per_s": rate,
        }

    def run(self, minutes: int) -> None:
        """A batch each 30 s; now and then a reading comes four minutes late."""
        for number in range(minutes * 60_000 // STEP_MS):
            self.now_ms += STEP_MS
            at_ms = self.now_ms - 1_500
            late = [at_ms - 240_000 - 7] if number % 40 == 15 else []
            self.commit(at_ms, *late)

    def points(self, bucket_ms: int) -> list[Row]:
        """What a reader draws over all the time there was, at this width."""
        count = -(-(self.now_ms - BEGIN_MS) // bucket_ms)
        table = AggregatesReader(str(self.store)).partition_history(
            **KEY, partition=1, since_ms=BEGIN_MS, until_ms=self.now_ms, points_max=count
        )
        rows: list[Row] = table.to_pylist()
        return rows

    def spans(self) -> dict[str, int]:
        """How many points of which span are stored."""
        found: dict[str, int] = defaultdict(int)
        assert self.writer.manifest is not None
        for file in self.writer.manifest.history["partition_history"]:
            found[file.span] += file.rows
        return found

    def expect(self, bucket_ms: int) -> None:
        """Each bucket is what its readings make."""
        buckets: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(self.readings, key=lambda row: row["at_ms"]):
            if row["partition"] == 1:
                buckets[row["at_ms"] // bucket_ms].append(row)
        points = self.points(bucket_ms)
        assert [point["at_ms"] // bucket_ms for point in points] == sorted(buckets)
        for point, bucket in zip(points, sorted(buckets), strict=True):
            rows = buckets[bucket]
            rates = [row["in_bytes_per_s"] for row in rows if row["in_bytes_per_s"] is not None]
            assert point["readings"] == len(rows)
            assert (point["at_ms"], point["high_watermark"]) == (
                rows[-1]["at_ms"],
                rows[-1]["high_watermark"],
            )
            if rates:
                assert (point["in_bytes_per_s_min"], point["in_bytes_per_s_max"]) == (
                    min(rates),
                    max(rates),
                )
            mean = pytest.approx(sum(rates) / len(rates)) if rates else None
            assert point["in_bytes_per_s"] == mean
            known = None if len(rates) == len(rows) else len(rates)
            assert point["in_bytes_per_s_known"] == known


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_every_width_shows_each_reading_once_with_its_extremes(job: Job) -> None:
    job.run(minutes=133)
    stored = job.spans()
    assert 2 * 128 < stored[MINUTE] < 2 * 140, "late readings are points of their own"
    assert stored[HOUR] == 2 * 2
    for bucket_ms in (60_000, 300_000, 3_600_000):
        job.expect(bucket_ms)


def test_a_job_that_is_killed_at_any_batch_neither_loses_nor_doubles(job: Job) -> None:
    for number in range(16):
        # What the killed one had begun is lost, or done and never named.
        job.start(Never() if number % 3 else AtOnce())
        job.run(minutes=3)
    job.start(AtOnce())
    job.run(minutes=3)
    assert job.spans()[MINUTE] > 2 * 40
    job.expect(60_000)
    job.expect(3_600_000)


def test_after_a_pause_longer_than_fine_history_nothing_is_missing(job: Job) -> None:
    job.start(Never())
    job.run(minutes=5)
    job.now_ms += 3 * SPANS_MS[HOUR]
    job.start(AtOnce())
    job.run(minutes=3)
    job.expect(60_000)


def test_an_hour_whose_end_the_job_has_missed_is_one_point(job: Job) -> None:
    job.run(minutes=58)
    job.now_ms += 14 * 60_000
    job.run(minutes=8)
    assert job.spans()[HOUR] == 2
    job.expect(3_600_000)


def test_more_files_than_are_merged_at_once_do_not_cut_a_minute(job: Job) -> None:
    job.start(Never())
    for _ in range(INPUTS_MAX + 22):
        job.now_ms += 20_000
        job.commit(job.now_ms - 1_500)
    job.start(AtOnce())
    job.now_ms += 2 * 60_000
    for _ in range(4):
        job.now_ms += 1_000
        job.commit()
    assert job.spans()[MINUTE] == 2 * (INPUTS_MAX + 22) // 3
    job.expect(60_000)


def test_what_upkeep_writes_is_not_swept_before_it_is_named(job: Job) -> None:
    job.run(minutes=2)
    job.now_ms += GRACE_MS
    job.run(minutes=4)
    manifest = job.writer.manifest
    assert manifest is not None
    assert all((job.store / path).exists() for path in manifest.paths())


def test_a_file_that_nobody_can_read_is_told_and_left_out(job: Job) -> None:
    job.start(Never())
    job.run(minutes=3)
    manifest = job.writer.manifest
    assert manifest is not None
    spoilt = manifest.history["partition_history"][2]
    (job.store / spoilt.path).write_bytes(b"PAR1 no more")
    job.start(AtOnce())
    job.run(minutes=4)
    assert any("could not be merged" in text for text in job.notices)
    found = sum(point["readings"] for point in job.points(60_000))
    assert found == len(job.readings) // 2 - spoilt.rows // 2
    assert job.spans()[MINUTE] > 0


def files(count: int, span: str = FINE, **fields: Any) -> list[HistoryFile]:
    made = {"level": 0, "rows": 10, "is_rolled": True, **fields}
    return [
        HistoryFile(path=f"{n:04}", span=span, from_ms=n, until_ms=n, **made) for n in range(count)
    ]


def kept_up(found: Sequence[HistoryFile], now_ms: int) -> list[HistoryFile]:
    """What is left when all that is due was done."""
    history = {"partition_history": tuple(found)}
    number = 0
    while tasks := due_tasks(history, now_ms):
        done = []
        for task in tasks:
            number += 1
            ends = [file.from_ms for file in task.inputs], [file.until_ms for file in task.inputs]
            output = HistoryFile(
                path=f"merged-{number}",
                span=task.span,
                level=task.level,
                rows=sum(file.rows for file in task.inputs),
                from_ms=min(ends[0]),
                until_ms=max(ends[1]),
                is_rolled=not task.is_rollup and task.inputs[0].is_rolled,
            )
            done.append(Done(task=task, output=output))
        history = adopted(history, done)
    return list(history["partition_history"])


def test_files_merge_level_by_level() -> None:
    found = kept_up(files(MERGE_FILES**LEVEL_MAX + 3), now_ms=0)
    assert sorted((file.level, file.rows) for file in found) == [
        *[(0, 10)] * 3,
        (LEVEL_MAX, 10 * MERGE_FILES**LEVEL_MAX),
    ]
    assert len(kept_up(files(MERGE_FILES, rows=3_000_000), now_ms=0)) == MERGE_FILES


def test_a_reader_takes_what_is_merged_and_the_rest_as_it_is() -> None:
    day_ms = 24 * SPANS_MS[HOUR]
    found = [
        HistoryFile(path="hours", span=HOUR, level=0, rows=1, from_ms=0, until_ms=100 * day_ms),
        HistoryFile(
            path="minutes", span=MINUTE, level=0, rows=1, from_ms=93 * day_ms,
            until_ms=100 * day_ms, is_rolled=True,
        ),
        HistoryFile(
            path="last minutes", span=MINUTE, level=0, rows=1, from_ms=100 * day_ms,
            until_ms=100 * day_ms + 1,
        ),
        HistoryFile(
            path="fine", span=FINE, level=0, rows=1, from_ms=100 * day_ms - SPANS_MS[HOUR],
            until_ms=100 * day_ms, is_rolled=True,
        ),
        HistoryFile(
            path="last", span=FINE, level=0, rows=1, from_ms=100 * day_ms, until_ms=100 * day_ms,
        ),
    ]  # fmt: skip

    def chosen(since_ms: int, until_ms: int) -> tuple[set[str], int]:
        span = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=300)
        choice = files_for(found, span)
        return set(choice.files), choice.bucket_ms

    now_ms = 100 * day_ms
    assert chosen(now_ms - 600_000, now_ms) == ({"fine", "last"}, 2_000)
    assert chosen(now_ms - day_ms, now_ms) == ({"minutes", "last minutes", "last"}, 300_000)
    assert chosen(0, now_ms) == ({"hours", "last minutes", "last"}, 43_200_000)
    assert chosen(now_ms - 3 * day_ms, now_ms - 3 * day_ms + 600_000) == ({"minutes"}, 60_000)
    assert chosen(now_ms - 9 * day_ms, now_ms - 9 * day_ms + 600_000) == ({"hours"}, 3_600_000)


def test_a_clock_that_is_hours_behind_hides_no_chart(tmp_path: Path) -> None:
    job = Job(tmp_path, retention_ms=600_000)
    job.run(20)
    for _ in range(3):  # until it is known to be behind, and corrected
        job.now_ms += STEP_MS
        of_before_ms = job.now_ms - SPANS_MS[MINUTE]
        job.commit(job.now_ms - 1_500, of_before_ms, job.now_ms - 9 * SPANS_MS[HOUR] // 2)
    job.run(5)
    assert job.points(STEP_MS)[0]["at_ms"] < BEGIN_MS + 2 * SPANS_MS[MINUTE]
