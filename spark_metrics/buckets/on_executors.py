"""Folds the buckets of a batch by tasks of Spark's executors, a task for each.

The driver reads no record. It tells each task what is known before the batch. The task reads the
records of its bucket, judges clocks and rounds, folds the rows with the bucket's state, and writes
all files under names of its own attempt. One small row comes back: from the heads in it the driver
learns what is known after the batch. So tasks may fail, be killed or run twice: a version names the
files of one attempt, and the others are swept.
"""

import gc
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker.metrics_schema import BUCKETS
from spark_metrics.buckets.bucket_files import files_of, fold_files
from spark_metrics.buckets.bucket_rows import rows_of_bucket
from spark_metrics.buckets.judged_batch import judge
from spark_metrics.buckets.on_driver import bad_heads
from spark_metrics.buckets.plan import RECORD, FoldedBatch, FoldedBucket, FoldPlan, Phases
from spark_metrics.decode.record_head import Head, KafkaRecord, buckets_within, read_head
from spark_metrics.decode.superseded_rounds import newest_rounds
from spark_metrics.fold.bucket import Rows
from spark_metrics.store.durable import make_lasting
from spark_metrics.store.table_files import write_points
from spark_metrics.store.writer import monotonic_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEAD_BYTES: Final = 4_096
"""Within so many a record says which bucket it is of, if it does."""
_PLACE: Final = '"bucket_of": ?\\\\[(\\\\d+), ?(\\\\d+)\\\\]'
_HEAD: Final = f"substring_index(CAST(substring(value, 1, {HEAD_BYTES}) AS STRING), '\\n', 1)"
_BUCKET, _OF = (f"try_cast(regexp_extract({_HEAD}, '{_PLACE}', {n}) AS INT)" for n in (1, 2))
"""Null where a record does not say so: its rows may be of all buckets."""
_RESULT: Final = pa.schema({"result": pa.binary()})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The row that a task hands back."""

    bucket: int
    heads: Sequence[Head]
    """Heads of its bucket's records, without their rows; the first bucket that a record concerns
    has its head."""
    folded: FoldedBucket
    bad: Sequence[Mapping[str, Any]]


class ExecutorFold:
    """A ``BucketFold`` whose driver reads no record."""

    def fold(self, plan: FoldPlan, batch: "DataFrame", phases: Phases) -> FoldedBatch | None:
        """Fold every bucket in a task; Spark tries one that fails again.

        How many buckets there are follows from the version before.
        """
        of_tasks = replace(plan, before=replace(plan.before, groups=()))
        began_ms = monotonic_ms()
        with phases.of("fold"):
            results = sorted(self.run_tasks(of_tasks, batch), key=lambda it: it.bucket)
        if [it.bucket for it in results] != list(range(plan.buckets)):
            raise RuntimeError(f"of {plan.buckets} buckets {len(results)} came back")
        with phases.of("decode"):
            by_offset = {_place(head): head for it in results for head in it.heads}
            heads = [by_offset[place] for place in sorted(by_offset)]
            judged = judge(plan.before.later(monotonic_ms() - began_ms), heads)
        if heads and not judged.heads:
            return None
        bad = {
            (it["kafka_partition"], it["kafka_offset"]): it for each in results for it in each.bad
        }
        return FoldedBatch(
            records=len(judged.heads),
            judged=judged,
            buckets=[it.folded for it in results],
            bad=[bad[place] for place in sorted(bad)],
        )

    def run_tasks(self, plan: FoldPlan, batch: "DataFrame") -> Sequence[TaskResult]:
        """Run a task for each bucket; their results, in any order."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from run_task(plan, batches)

        rows = by_bucket(batch, plan.buckets).mapInArrow(run, "result BINARY").toArrow()
        # They come from tasks of this very job.
        return [pickle.loads(it) for it in rows["result"].to_pylist()]  # noqa: S301


def by_bucket(batch: "DataFrame", buckets: int) -> "DataFrame":
    """The records, a partition for each bucket; one that may have rows of several is in each of
    these (``Head.buckets``)."""
    records = batch.selectExpr(*RECORD)
    if buckets == 1:
        return records.coalesce(1)
    fine = ", ".join(str(of) for of in range(buckets, BUCKETS + 1, buckets) if BUCKETS % of == 0)
    coarse = ", ".join(str(of) for of in range(1, buckets) if buckets % of == 0)
    cut = records.selectExpr(
        "*",
        f"explode(CASE WHEN {_OF} IN ({fine}) AND {_BUCKET} < {_OF} "
        f"THEN array({_BUCKET} % {buckets}) WHEN {_OF} IN ({coarse}) AND {_BUCKET} < {_OF} "
        f"THEN sequence({_BUCKET}, {buckets - 1}, {_OF}) "
        f"ELSE sequence(0, {buckets - 1}) END) AS bucket",
    )
    return cut.repartitionById(buckets, cut["bucket"])


def run_task(plan: FoldPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task of the bucket whose number is that of its partition."""
    from pyspark import TaskContext

    if not gc.get_freeze_count():
        # PySpark collects garbage after each task, which would look through all modules again.
        gc.freeze()
    context = TaskContext.get()
    assert context is not None, "it runs as a task"
    columns = [*KafkaRecord.__dataclass_fields__]
    records = (KafkaRecord(**row) for batch in batches for row in batch.select(columns).to_pylist())
    result = fold_records(plan, context.partitionId(), records)
    yield pa.record_batch([pa.array([pickle.dumps(result)], pa.binary())], schema=_RESULT)


def fold_records(plan: FoldPlan, bucket: int, records: Iterable[KafkaRecord]) -> TaskResult:
    """Fold a bucket's records with its state, and write everything, forced to disk."""
    # Groups are the driver's business: it learns of them by the heads of the first task.
    every = (read_head(record, with_groups=not bucket) for record in records)
    read = [head for head in every if bucket in head.buckets(plan.buckets)]
    own_heads = [_without_bytes(head) for head in read if head.buckets(plan.buckets)[0] == bucket]
    judged = judge(plan.before, [of_bucket(head, bucket, plan.buckets) for head in read])
    thinned = [newest_rounds(step.records) for step in judged.steps]
    bad = bad_heads(judged.heads, thinned)

    def rows() -> Iterator[Rows]:
        for step in thinned:
            step_rows, spoilt = rows_of_bucket(step, bucket, plan.buckets)
            bad.update(spoilt)
            yield step_rows

    files = files_of(plan.store)
    folded = fold_files(files, plan, bucket, judged, rows())
    history = {
        table: write_points(files, table, points, plan.version, str(bucket))
        for table, points in folded.points.items()
    }
    written = [it.path for each in history.values() for it in each]
    make_lasting(files, [*folded.paths.values(), *written])
    return TaskResult(
        bucket=bucket,
        heads=own_heads,
        folded=replace(folded, points={}, history=history),
        bad=[*bad.values()],
    )


def of_bucket(head: Head, bucket: int, buckets: int) -> Head:
    """The same, whose round is whole once this bucket's parts of it were seen."""
    part = head.part
    if part is None or part.parts_of is None:
        return head
    needed = _needed(part.parts, part.parts_of, bucket, buckets)
    return replace(head, part=replace(part, needed=needed))


@lru_cache(64)
def _needed(parts: int, parts_of: tuple[int, ...], bucket: int, buckets: int) -> frozenset[int]:
    """The parts of a round that concern a bucket: its own, and those of no bucket."""
    place = parts - sum(parts_of)
    needed = set(range(place))
    for number, count in enumerate(parts_of):
        if bucket in buckets_within(number, len(parts_of), buckets):
            needed.update(range(place, place + count))
        place += count
    return frozenset(needed)


def _without_bytes(head: Head) -> Head:
    """The same without the record's bytes."""
    return replace(head, record=replace(head.record, value=b""), body=b"")


def _place(head: Head) -> tuple[int, int]:
    return head.record.partition, head.record.offset
