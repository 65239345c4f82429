"""The files of a bucket: its state is read of the tables of "now" that its figures lie in."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from spark_metrics.decode.record_rows import cut_rows
from spark_metrics.fold.bucket import NO_PARTITIONS, BucketState, Folded
from spark_metrics.fold.names import NAMES, NOBODY
from spark_metrics.schema import COMMIT_STATE
from spark_metrics.store.files import StoreFiles

Put = Callable[[str, str, pa.Table], str]
"""Writes a part of a table into the store: table, part, rows; returns its path."""


def read_state(
    files: StoreFiles, now: Mapping[str, Sequence[str]], bucket: int, buckets: int
) -> BucketState:
    """The state of one of so many buckets, out of the files of a version.

    Where that version has another number of buckets, the rows are cut anew.
    """

    def commits(path: str) -> pa.Table:
        return files.read_texts(path, [*NAMES, *COMMIT_STATE])

    def found(table: str, read: Callable[[str], pa.Table], nothing: pa.Table) -> pa.Table:
        paths = now.get(table, ())
        if len(paths) == buckets:
            return read(paths[bucket])
        if not paths:
            return nothing
        # In some files a column may have nulls.
        each = [read(path) for path in paths]
        whole = pa.concat_tables(each, promote_options="permissive").unify_dictionaries()
        return cut_rows(whole, buckets)[bucket]

    return BucketState(
        partitions=found("partitions", files.read_whole, NO_PARTITIONS),
        commits=found("commits", commits, NOBODY),
    )


def write_bucket(put: Put, folded: Folded, part: str) -> dict[str, str]:
    """Write the figures and the state of a bucket; the path of each table."""
    tables = {
        "partitions": folded.state.partitions,
        "replicas": folded.replicas,
        "commits": folded.state.commits,
    }
    return {name: put(name, part, table) for name, table in tables.items()}
