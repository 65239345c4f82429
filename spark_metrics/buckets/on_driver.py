"""Folds the buckets of a batch in threads of the driver.

On one machine this is the cheaper way: records are fetched once, and no other process is started
(docs/decisions/0015-the-fold-on-executors.md).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from spark_metrics.buckets.bucket_files import files_of, fold_files
from spark_metrics.buckets.plan import WHOLE_VALUE, FoldedBatch, FoldedBucket, FoldPlan, Wave
from spark_metrics.buckets.shares import Share, shares
from spark_metrics.decode.record_head import Head, bad_value
from spark_metrics.decode.superseded_rounds import newest_rounds
from spark_metrics.fold.bucket import points_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WORKERS: Final = 2


class DriverFold:
    """A ``BucketFold`` over records that the driver has fetched whole."""

    value = WHOLE_VALUE

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(WORKERS)

    def fold(
        self, plan: FoldPlan, batch: "DataFrame", heads: list[Head], waves: Sequence[Wave]
    ) -> FoldedBatch:
        """Side by side; records are let go of as soon as their rows are read."""
        thinned = [newest_rounds(wave.records) for wave in waves]
        bad = bad_heads(heads, thinned)
        cut = [shares(records, plan.buckets) for records in thinned]
        heads.clear()
        for wave, records in zip(waves, thinned, strict=True):
            wave.records.clear()
            records.clear()
        files = files_of(plan.store)

        def fold(bucket: int, brought: Sequence[Share]) -> FoldedBucket:
            rows = (share.take() for share in brought)
            folded, paths = fold_files(files, plan, bucket, rows)
            return FoldedBucket(
                paths=paths,
                state_rows=folded.state.rows,
                sums=folded.sums,
                points=points_of(folded),
            )

        each = list(self._threads.map(fold, range(plan.buckets), zip(*cut, strict=True)))
        for share in chain.from_iterable(cut):
            bad.update(share.bad)
        return FoldedBatch(buckets=each, bad=[bad[number] for number in sorted(bad)])


def bad_heads(
    heads: Sequence[Head], waves: Sequence[Sequence[tuple[int, Head]]]
) -> dict[int, dict[str, Any]]:
    """The texts kept of records that are bad as a whole, by their numbers in the batch."""
    every = chain(enumerate(heads), *waves)
    return {number: bad_value(head) for number, head in every if head.is_bad}
