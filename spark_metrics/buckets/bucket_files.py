"""The files of a bucket: its state is read of the tables of "now" that its figures lie in."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

import pyarrow as pa

from spark_metrics.arrow_tables import with_columns
from spark_metrics.buckets.judged_batch import Judged
from spark_metrics.buckets.plan import FoldedBucket, FoldPlan
from spark_metrics.decode.record_rows import cut_rows
from spark_metrics.fold.bucket import (
    NO_COMMITS,
    NO_PARTITIONS,
    BucketState,
    Rows,
    fold_bucket,
)
from spark_metrics.fold.names import NAMES
from spark_metrics.schema import COMMIT_STATE, PARTITION_STATE
from spark_metrics.state.source_clocks import corrections
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.table_files import write_now

_COMMITS: Final = pa.schema(COMMIT_STATE)
_PARTITIONS: Final = pa.schema(PARTITION_STATE)


@lru_cache(1)
def files_of(store: str) -> StoreFiles:
    """The files of a store: a process that folds one bucket after the other connects once."""
    return StoreFiles(store)


def read_state(files: StoreFiles, plan: FoldPlan, bucket: int) -> BucketState:
    """The state of one bucket, out of the files of the version before.

    Where that version has fewer buckets, the rows are cut anew. What an older release did not
    write is not known yet.
    """
    buckets = plan.buckets

    def partitions(path: str) -> pa.Table:
        return with_columns(files.read_whole(path), _PARTITIONS)

    def commits(path: str) -> pa.Table:
        return with_columns(files.read_texts(path, [*NAMES, *COMMIT_STATE]), _COMMITS)

    def found(table: str, read: Callable[[str], pa.Table], nothing: pa.Table) -> pa.Table:
        paths = plan.now.get(table, ())
        if len(paths) == buckets:
            return read(paths[bucket])
        if not paths:
            return nothing
        # In some files a column may have nulls.
        each = [read(path) for path in paths]
        whole = pa.concat_tables(each, promote_options="permissive").unify_dictionaries()
        return cut_rows(whole, buckets)[bucket]

    return BucketState(
        partitions=found("partitions", partitions, NO_PARTITIONS),
        commits=found("commits", commits, NO_COMMITS),
    )


def fold_files(
    files: StoreFiles, plan: FoldPlan, bucket: int, judged: Judged, rows: Iterable[Rows]
) -> FoldedBucket:
    """Fold a bucket with the rows of each step; its figures and state are written as a part of the
    version, its points are not."""
    state = read_state(files, plan, bucket)
    behind = corrections(plan.before.memory.clocks, judged.memory.clocks)
    arounds = (step.around for step in judged.steps)
    folded = fold_bucket(state, behind, zip(rows, arounds, strict=True))
    del state
    tables = {
        "partitions": folded.state.partitions,
        "replicas": folded.replicas,
        "commits": folded.state.commits,
    }
    paths = {
        name: write_now(files, name, table, plan.version, str(bucket))
        for name, table in tables.items()
    }
    return FoldedBucket(
        paths=paths, state_rows=folded.state.rows, sums=folded.sums, points=folded.points
    )
