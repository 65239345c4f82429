"""Folds the buckets of a batch in threads of the driver.

On one machine this is the cheaper way: records are fetched once, and no other process is started
(docs/decisions/0015-the-fold-on-executors.md).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from spark_metrics.buckets.bucket_files import files_of, fold_files
from spark_metrics.buckets.bucket_rows import BucketRows, buckets_for, count_rows, cut_by_bucket
from spark_metrics.buckets.judged_batch import Judged, judge
from spark_metrics.buckets.plan import RECORD, FoldedBatch, FoldedBucket, FoldPlan, Phases
from spark_metrics.decode.record_head import Head, KafkaRecord, NumberedHeads, bad_value, read_head
from spark_metrics.decode.superseded_rounds import newest_rounds
from spark_metrics.store.writer import monotonic_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WORKERS: Final = 2


class DriverFold:
    """A ``BucketFold`` over records that the driver has fetched whole."""

    def __init__(self, steady_ms: Callable[[], int] = monotonic_ms) -> None:
        self._steady_ms = steady_ms
        self._threads = ThreadPoolExecutor(WORKERS)

    def fold(self, plan: FoldPlan, batch: "DataFrame", phases: Phases) -> FoldedBatch | None:
        """Side by side; records are let go of as soon as their rows are read."""
        began_ms = self._steady_ms()
        with phases.of("fetch"):
            rows = batch.selectExpr(*RECORD).toArrow().to_pylist()
        with phases.of("decode"):
            # A broker that hangs holds up the reading, and the others were heard of at its end.
            before = plan.before.later(self._steady_ms() - began_ms)
            judged = judge(before, [read_head(KafkaRecord(**row)) for row in rows])
        if rows and not judged.heads:
            return None
        rows.clear()
        records = len(judged.heads)
        rows_told = count_rows(record for step in judged.steps for record in step.records)
        plan = replace(plan, buckets=buckets_for(rows_told, plan.buckets))
        with phases.of("fold"):
            buckets, bad = self._fold(plan, judged)
        return FoldedBatch(records=records, judged=judged, buckets=buckets, bad=bad)

    def _fold(
        self, plan: FoldPlan, judged: Judged
    ) -> tuple[list[FoldedBucket], list[dict[str, Any]]]:
        thinned = [newest_rounds(step.records) for step in judged.steps]
        bad = bad_heads(judged.heads, thinned)
        cut = [cut_by_bucket(records, plan.buckets) for records in thinned]
        judged.heads.clear()
        for step, records in zip(judged.steps, thinned, strict=True):
            step.records.clear()
            records.clear()
        files = files_of(plan.store)

        def fold(bucket: int, brought: Sequence[BucketRows]) -> FoldedBucket:
            rows = (of_step.take() for of_step in brought)
            return fold_files(files, plan, bucket, judged, rows)

        each = list(self._threads.map(fold, range(plan.buckets), zip(*cut, strict=True)))
        for rows in chain.from_iterable(cut):
            bad.update(rows.bad)
        return each, [bad[number] for number in sorted(bad)]


def bad_heads(heads: Sequence[Head], steps: Sequence[NumberedHeads]) -> dict[int, dict[str, Any]]:
    """The texts kept of records that are bad as a whole, by their numbers in the batch."""
    every = chain(enumerate(heads), *steps)
    return {number: bad_value(head) for number, head in every if head.is_bad}
