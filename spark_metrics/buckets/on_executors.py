"""Folds the buckets of a batch by tasks of Spark's executors, a task for each.

The driver reads the heads of records, and tells each task what is known of rounds and clocks. The
task reads the records of its bucket, folds them with the bucket's state, and writes all files
under names of its own attempt. One small row comes back. So tasks may fail, be killed or run twice:
a version names the files of one attempt, and the others are swept.
"""

import gc
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker.metrics_schema import BUCKETS
from spark_metrics.buckets.bucket_files import files_of, fold_files
from spark_metrics.buckets.on_driver import bad_heads
from spark_metrics.buckets.plan import (
    RECORD,
    WHOLE_VALUE,
    FoldedBatch,
    FoldedBucket,
    FoldPlan,
    Wave,
)
from spark_metrics.buckets.shares import bucket_rows
from spark_metrics.decode.record_head import (
    Head,
    KafkaRecord,
    read_head,
    set_right,
    without_taken,
)
from spark_metrics.decode.superseded_rounds import complete_rounds, newest_rounds
from spark_metrics.fold.bucket import Rows, points_of
from spark_metrics.state.rounds import RoundPart, SourceKey
from spark_metrics.store.durable import make_lasting
from spark_metrics.store.table_files import write_points

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXT: Final = f"CAST({WHOLE_VALUE} AS STRING)"
_HEAD: Final = f"substring_index({_TEXT}, '\\n', 1)"
_LINE_END: Final = f"CASE WHEN contains({_TEXT}, '\\n') THEN '\\n' ELSE '' END"
_PLACE: Final = '"bucket_of": ?\\\\[(\\\\d+), ?(\\\\d+)\\\\]'
_BUCKET, _OF = (f"try_cast(regexp_extract({_HEAD}, '{_PLACE}', {n}) AS INT)" for n in (1, 2))
"""Null where a record does not say so: its rows may be of all buckets."""
_RESULT: Final = pa.schema({"result": pa.binary()})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """The plan of a batch, and how a task finds the rounds of its records in it."""

    plan: FoldPlan
    waves: Mapping[tuple[SourceKey, int], int]
    """In which wave the rows of a round are folded."""
    complete: Sequence[Mapping[SourceKey, int]]
    """Of each wave, when the newest complete round of each source began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The row that a task hands back."""

    bucket: int
    folded: FoldedBucket
    bad: Sequence[Mapping[str, Any]]


class ExecutorFold:
    """A ``BucketFold`` whose driver reads no more than the heads of records."""

    value = f"CAST(concat({_HEAD}, {_LINE_END}) AS BINARY)"

    def fold(
        self, plan: FoldPlan, batch: "DataFrame", heads: list[Head], waves: Sequence[Wave]
    ) -> FoldedBatch:
        """Fold every bucket in a task; Spark tries one that fails again."""
        told = TaskPlan(
            plan=plan,
            waves={
                _round_of(head.part): number
                for number, wave in enumerate(waves)
                for _, head in wave.records
                if head.part is not None
            },
            complete=[complete_rounds(wave.records) for wave in waves],
        )
        heads.clear()
        for wave in waves:
            wave.records.clear()

        results = sorted(self.run_tasks(told, batch), key=lambda it: it.bucket)
        if [it.bucket for it in results] != list(range(plan.buckets)):
            raise RuntimeError(f"of {plan.buckets} buckets {len(results)} came back")
        bad = {_place_of(it): it for result in results for it in result.bad}
        return FoldedBatch(
            buckets=[it.folded for it in results], bad=[bad[place] for place in sorted(bad)]
        )

    def run_tasks(self, told: TaskPlan, batch: "DataFrame") -> Sequence[TaskResult]:
        """Run a task for each bucket; their results, in any order."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from run_task(told, batches)

        rows = by_bucket(batch, told.plan.buckets).mapInArrow(run, "result BINARY").toArrow()
        # They come from tasks of this very job.
        return [pickle.loads(it) for it in rows["result"].to_pylist()]  # noqa: S301


def by_bucket(batch: "DataFrame", buckets: int) -> "DataFrame":
    """The records, a partition for each bucket; one that has rows of several is in all of them."""
    records = batch.selectExpr(*RECORD, f"{WHOLE_VALUE} AS value")
    if buckets == 1:
        return records.coalesce(1)
    every = ", ".join(map(str, range(buckets)))
    whole = ", ".join(str(of) for of in range(buckets, BUCKETS + 1, buckets) if BUCKETS % of == 0)
    cut = records.selectExpr(
        "*",
        f"explode(CASE WHEN {_OF} IN ({whole}) AND {_BUCKET} < {_OF} "
        f"THEN array({_BUCKET} % {buckets}) ELSE array({every}) END) AS bucket",
    )
    return cut.repartitionById(buckets, cut["bucket"])


def run_task(told: TaskPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task of the bucket whose number is that of its partition."""
    from pyspark import TaskContext

    if not gc.get_freeze_count():
        # PySpark collects garbage after each task, which would look through all modules again.
        gc.freeze()
    context = TaskContext.get()
    assert context is not None, "it runs as a task"
    columns = [*KafkaRecord.__dataclass_fields__]
    records = (KafkaRecord(**row) for batch in batches for row in batch.select(columns).to_pylist())
    result = fold_records(told, context.partitionId(), records)
    yield pa.record_batch([pa.array([pickle.dumps(result)], pa.binary())], schema=_RESULT)


def fold_records(told: TaskPlan, bucket: int, records: Iterable[KafkaRecord]) -> TaskResult:
    """Fold a bucket's records with its state, and write everything, forced to disk."""
    plan = told.plan
    read = [read_head(record) for record in records]
    heads = set_right(without_taken(read, plan.before), plan.clocks)
    waves: list[list[tuple[int, Head]]] = [[] for _ in plan.arounds]
    for number, head in enumerate(heads):
        if head.part is not None and (wave := told.waves.get(_round_of(head.part))) is not None:
            waves[wave].append((number, head))
    thinned = [newest_rounds(*it) for it in zip(waves, told.complete, strict=True)]
    bad = bad_heads(heads, thinned)

    def rows() -> Iterator[Rows]:
        for wave in thinned:
            found, spoilt = bucket_rows(wave, bucket, plan.buckets)
            bad.update(spoilt)
            yield found

    files = files_of(plan.store)
    folded, paths = fold_files(files, plan, bucket, rows())
    history = {
        table: write_points(files, table, points, plan.version, str(bucket))
        for table, points in points_of(folded).items()
    }
    make_lasting(files, [*paths.values(), *(it.path for each in history.values() for it in each)])
    return TaskResult(
        bucket=bucket,
        folded=FoldedBucket(
            paths=paths, state_rows=folded.state.rows, sums=folded.sums, history=history
        ),
        bad=[*bad.values()],
    )


def _round_of(part: RoundPart) -> tuple[SourceKey, int]:
    return SourceKey(part.cluster, part.broker), part.round_ms


def _place_of(bad: Mapping[str, Any]) -> tuple[int, int]:
    return bad["kafka_partition"], bad["kafka_offset"]
