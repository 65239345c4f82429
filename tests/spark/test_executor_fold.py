"""Buckets folded by tasks make the same store as buckets folded by the driver."""

import re
from collections.abc import Callable, Container, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.metrics_schema import (
    BUCKETS,
    CommitSample,
    Envelope,
    ReplicaSample,
    Row,
    bucket_of,
    encode_round,
)
from spark_metrics.buckets import on_executors
from spark_metrics.buckets.on_executors import ExecutorFold, TaskResult, by_bucket, fold_records
from spark_metrics.buckets.plan import FoldPlan
from spark_metrics.decode.record_head import KafkaRecord, read_head
from spark_metrics.store import durable
from spark_metrics.store.files import StoreFiles, force
from spark_metrics.store.layout import GRACE_MS
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from tests.spark.story import T0_MS, Story, broker, commit, group, replica, round_values

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    # pyspark leaves the sockets, over which it collects Arrow, to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
TOPICS, PARTITIONS = 21, 100
GONE = (0, 4)
"""Topics of two buckets."""
OWN = ("heard_ms",)
KEYS = ("cluster", "group_id", "topic", "partition", "broker", "at_ms")


@pytest.fixture
def stories(spark: SparkSession, tmp_path: Path) -> tuple[Story, Story]:
    by_driver = Story(session=spark, store=tmp_path / "driver")
    by_tasks = Story(session=spark, store=tmp_path / "tasks", buckets=ExecutorFold())
    return by_driver, by_tasks


def play(stories: tuple[Story, Story], values: list[bytes]) -> dict[str, pa.Table]:
    """A batch of these records for both; what both show."""
    found = []
    for story in stories:
        story.records = list(values)
        story.commit()
        report, bad = story.reports[-1], sorted((story.store / "bad").iterdir())
        counts = (report.records, report.bad_records, report.lost_records)
        found.append((shown(story.store), counts, [path.read_text() for path in bad]))
    (tables, *further), (others, *others_further) = found
    assert others_further == further
    for name, table in tables.items():
        assert others[name].equals(table), name
    return tables


def shown(store: Path) -> dict[str, pa.Table]:
    """The tables of now, and some of history, without times at which the job did something."""
    reader = AggregatesReader(str(store))
    now = reader.now()
    assert now is not None
    tables = {name: it for name, it in now.tables.items() if name != "health"}
    span: dict[str, Any] = {
        "since_ms": T0_MS - 60_000,
        "until_ms": T0_MS + 600_000,
        "points_max": 10_000,
    }
    for cluster, topic in (("story", "t"), ("large", "t-7")):
        place: dict[str, Any] = {"cluster": cluster, "topic": topic}
        tables |= {
            f"partitions of {topic}": reader.partition_history(**place, partition=0, **span),
            f"commits of {topic}": reader.commit_history(**place, group_id="g", **span),
            topic: reader.topic_history(**place, **span),
        }
    return {
        name: in_order(it.drop_columns([each for each in OWN if each in it.column_names]))
        for name, it in tables.items()
    }


def in_order(table: pa.Table) -> pa.Table:
    keys = [name for name in KEYS if name in table.column_names]
    return table.sort_by([(name, "ascending") for name in keys])


def large(at_ms: int, *, topics: int = TOPICS, without: Container[int] = ()) -> list[bytes]:
    """A round of a cluster whose records have rows of one bucket each."""
    rows: list[Row] = []
    for topic in (it for it in range(topics) if it not in without):
        for partition in range(PARTITIONS):
            place: dict[str, Any] = {"topic": f"t-{topic}", "partition": partition}
            led: dict[str, Any] = {"leader": 1, "leader_epoch": 1, "replicas": [1], "isr": [1]}
            end, read_ms = at_ms * (topic + 1), T0_MS + at_ms
            ends: dict[str, Any] = {
                "log_start_offset": 0,
                "high_watermark": end,
                "log_end_offset": end,
            }
            rows += [
                ReplicaSample(**place, **led, **ends, read_ms=read_ms),
                CommitSample(group_id="g", **place, committed_offset=0, read_ms=read_ms),
            ]
    envelope = Envelope(
        cluster="large", broker=1, broker_epoch=1, round_ms=T0_MS + at_ms, interval_ms=1_000
    )
    return encode_round(envelope, rows)


def small(at_ms: int, end: int) -> list[bytes]:
    told = (replica(at_ms, end), commit(at_ms, end - 5), group(at_ms), broker(at_ms, 101))
    return round_values(101, at_ms, *told)


def test_a_small_cluster_is_one_task(stories: tuple[Story, Story]) -> None:
    play(stories, small(0, 10))
    found = play(stories, [*small(1_000, 20), b"no sample", b"{}\n{}", *small(2_000, 30)])
    assert found["partitions"]["in_records_per_s"].to_pylist() == [pytest.approx(10.0)]
    assert found["commits"]["lag"].to_pylist() == [5]
    assert stories[1].reports[-1].bad_records == 2


def _of_the_next_bucket(told: re.Match[bytes]) -> bytes:
    return b'"bucket_of":[%d' % (int(told[1]) ^ 1)


def test_each_bucket_is_a_task_and_keeps_what_it_is_not_told_of(
    stories: tuple[Story, Story],
) -> None:
    first = large(0)
    assert all(re.search(rb'"bucket_of":.\d', it.partition(b"\n")[0]) for it in first[1:])
    play(stories, [*first, *small(0, 10)])
    # A part of a round is of one bucket, whose next part lies of that: what the others have stays.
    parts = large(1_000)[1:3]
    parts[1] = re.sub(rb'"bucket_of":.(\d)', _of_the_next_bucket, parts[1])
    found = play(stories, parts)
    assert found["partitions"].num_rows == TOPICS * PARTITIONS + 1
    assert stories[1].reports[-1].bad_records == 1
    # A backlog, whose last round lacks two topics: they are deleted. Others' rows are of several.
    backlog = [*large(2_000), *large(3_000, topics=TOPICS - 2)]
    found = play(stories, [*backlog, *small(1_000, 20), *small(2_000, 40)])
    assert found["partitions"].num_rows == (TOPICS - 2) * PARTITIONS + 1
    manifest = stories[1].writer.manifest
    assert manifest is not None
    paths = manifest.now["partitions"]
    assert 1 < len(paths) <= BUCKETS
    assert all(re.search(r"-\d_[0-9a-f]{12}\.parquet$", path) for path in paths)


def test_a_round_is_whole_in_a_bucket_once_its_parts_there_have_come(
    stories: tuple[Story, Story],
) -> None:
    story = stories[1]
    gone = {f"t-{n}" for n in GONE}

    def batch(values: list[bytes]) -> set[int]:
        """The buckets, of two, that topics which are gone are still in."""
        story.records = [*values]
        story.commit()
        assert story.reports[-1].bad_records == 0
        topics = {row["topic"] for row in story.now()["partitions"]}
        return {bucket_of("large", it, 0) % 2 for it in topics & gone}

    for at_ms in (0, 1_000):
        assert batch(large(at_ms, topics=24)) == {0, 1}
    parts = large(10_000, topics=24, without=GONE)
    late = [it for it in parts if re.match(rb'.*?"bucket_of":.(1|3|5|7),', it)][-1]
    assert batch([it for it in parts if it is not late]) == {1}
    assert batch([late]) == set()


@pytest.mark.parametrize("buckets", [2, 4, 8])
def test_a_record_goes_to_the_tasks_whose_rows_it_may_have(
    spark: SparkSession, tmp_path: Path, buckets: int
) -> None:
    story = Story(session=spark, store=tmp_path)
    told = [(0, 1), (1, 2), (3, 4), (5, 8), (9, 16), (63, 64), (2, 3), (4, 2), (7, 99), (0, 0)]
    heads = [f'"bucket_of":[{bucket},{of}],' for bucket, of in told] + ["", '"bucket_of":[0.5],']
    values = [
        b'{"v":2,%s%s\n{}' % (head.encode(), small(0, 1)[0].partition(b"\n")[0][7:])
        for head in heads
    ]
    rows = by_bucket(story.frame(values), buckets).toArrow().to_pylist()
    found = [sorted(it["bucket"] for it in rows if it["offset"] == n) for n in range(len(values))]
    read = [
        read_head(KafkaRecord(partition=0, offset=n, timestamp_ms=T0_MS, value=value))
        for n, value in enumerate(values)
    ]
    assert not any(head.is_bad for head in read)
    assert found == [list(head.buckets(buckets)) for head in read]


class FailingFiles(StoreFiles):
    """Fails at one of its calls, before or after the call has done its work."""

    def __init__(self, store: str, *, fails_at: int, is_done: bool) -> None:
        super().__init__(store)
        self.calls = 0
        self._fails_at, self._is_done = fails_at, is_done

    def call(self, what: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls == self._fails_at and not self._is_done:
            raise OSError("no space")
        answer = what(*arguments, **named)
        if self.calls == self._fails_at:
            raise OSError("connection lost")
        return answer

    def open(self, path: str) -> Any:
        return self.call(super().open, path)

    def write_table(self, path: str, table: Any) -> None:
        self.call(super().write_table, path, table)

    def write_sorted(self, *arguments: Any, **named: Any) -> Any:
        return self.call(super().write_sorted, *arguments, **named)


class RepeatedTasks(ExecutorFold):
    """Runs each task in this process, once for each fault, and then twice to its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.faults = 0

    def run_tasks(self, plan: FoldPlan, batch: DataFrame) -> Sequence[TaskResult]:
        rows = by_bucket(batch, plan.buckets).drop("bucket").toArrow().to_pylist()
        records = [KafkaRecord(**row) for row in rows]

        def attempt(**fault: Any) -> tuple[TaskResult | None, int]:
            files = FailingFiles(plan.store, **fault)
            self._monkeypatch.setattr(on_executors, "files_of", lambda store: files)
            self._monkeypatch.setattr(durable, "force", lambda path: files.call(force, path))
            try:
                return fold_records(plan, 0, records), files.calls
            except OSError:
                return None, files.calls

        calls = attempt(fails_at=0, is_done=False)[1]
        for number in range(1, calls + 1):
            for is_done in (False, True):
                assert attempt(fails_at=number, is_done=is_done) == (None, number)
                self.faults += 1
        whole = [attempt(fails_at=0, is_done=False)[0] for _ in range(2)]
        self._monkeypatch.undo()
        return [it for it in whole[:1] if it is not None]


def test_tasks_that_fail_at_any_call_or_run_twice_leave_nothing(
    stories: tuple[Story, Story], monkeypatch: pytest.MonkeyPatch
) -> None:
    play(stories, small(0, 10))
    tasks = RepeatedTasks(monkeypatch)
    stories[1].sink._buckets = tasks
    found = play(stories, small(1_000, 20))
    assert tasks.faults > 10
    assert found["partitions"]["in_records_per_s"].to_pylist() == [pytest.approx(10.0)]
    play(stories, [*small(2_000, 30), b"no sample"])
    store = stories[1].store
    steady_ms = count(0, 2 * GRACE_MS)
    writer = StoreWriter(str(store), steady_ms=lambda: next(steady_ms))
    writer.check()
    writer.check()
    assert writer.manifest is not None
    there = {path for folder in ("now", "history") for path in writer.files.list_files(folder)}
    assert there == writer.manifest.paths()
