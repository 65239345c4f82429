"""One bucket of partitions: rows of a batch and its state become figures, points and sums. Pure.

    replicas gathered by partition -> partitions folded with their state -> their logs
        -> commits by row number beside their state -> commits folded with the logs -> named again

A bucket needs nothing of the others. What concerns all of them (rounds of brokers, life of groups,
clocks) is handed in as ``Around``; what they add up to goes out as ``Sums``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.fold.clock_corrections import corrected_commits, corrected_partitions
from spark_metrics.fold.commits import newest_commits
from spark_metrics.fold.coordinators import still_reported, with_alive
from spark_metrics.fold.gather import gather
from spark_metrics.fold.logs import logs_of
from spark_metrics.fold.names import NAMES, aligned, named, names_of
from spark_metrics.fold.new_points import Clocks, commit_points, partition_points
from spark_metrics.fold.newest_readings import with_newest
from spark_metrics.fold.now_tables import hot_flags, replica_table
from spark_metrics.fold.partitions import newest_partitions
from spark_metrics.fold.sums import Sums, sums_of
from spark_metrics.schema import COMMIT_STATE, PARTITION_STATE, TEXT
from spark_metrics.state.job_state import KnownBroker
from spark_metrics.state.source_clocks import Correction

NO_PARTITIONS: Final = pa.schema(PARTITION_STATE).empty_table()
NO_COMMITS: Final = pa.schema(
    {name: pa.int32() if name == "partition" else TEXT for name in NAMES} | {**COMMIT_STATE}
).empty_table()


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The figures of all buckets together, when a step is folded."""

    brokers: Sequence[KnownBroker]
    alive: Mapping[tuple[str, str], int]
    """When each group (by cluster and id) committed anything last."""
    clocks: Clocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of a bucket in the records of a step (``schema.ROWS``)."""

    replicas: pa.Table
    commits: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketState:
    """The figures of a bucket that the next batch goes on from."""

    partitions: pa.Table
    """``schema.PARTITION_STATE``."""
    commits: pa.Table
    """``schema.COMMIT_STATE`` and ``names.NAMES``."""

    @property
    def rows(self) -> int:
        """Estimate the number of replicas and commits."""
        members = self.partitions["members"].combine_chunks()
        return int(len(members.flatten()) + self.commits.num_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A bucket after a batch."""

    state: BucketState
    """The state with the figures of ``tables.PARTITIONS`` and ``COMMITS``."""
    replicas: pa.Table
    """``tables.REPLICAS``."""
    points: Mapping[str, pa.Table]
    """New points by their table of history."""
    sums: Sums


def fold_bucket(
    state: BucketState,
    corrections: Sequence[Correction],
    steps: Iterable[tuple[Rows, Around]],
) -> Folded:
    """The bucket after these steps, one at least; ``corrections`` are of times in the state."""
    partitions = corrected_partitions(state.partitions, corrections)
    commits = corrected_commits(state.commits, corrections)
    of_partitions, of_commits = list[pa.Table](), list[pa.Table]()
    for rows, around in steps:
        newest = newest_partitions(gather(rows.replicas), partitions, around.brokers)
        partitions = _present(newest)
        commits = _commits(rows.commits, commits, partitions, around)
        of_partitions.append(partition_points(partitions, around.clocks))
        of_commits.append(commit_points(commits))
        del rows
    replicas = replica_table(partitions)
    return Folded(
        state=BucketState(
            partitions=partitions.append_column("is_hot", hot_flags(partitions)), commits=commits
        ),
        replicas=replicas,
        points={
            "partition_history": pa.concat_tables(of_partitions),
            "commit_history": pa.concat_tables(of_commits),
        },
        sums=sums_of(partitions, replicas, commits),
    )


def _commits(sampled: pa.Table, state: pa.Table, partitions: pa.Table, around: Around) -> pa.Table:
    beside = aligned(with_alive(sampled, around.alive), names_of(state), partitions)
    rows, carried = with_newest(beside.fresh, state)
    folded = newest_commits(rows, logs_of(partitions))
    return still_reported(named(folded, beside, carried), around.brokers)


def _present(partitions: pa.Table) -> pa.Table:
    """Leave out the partitions that are deleted; usually that is none."""
    is_there = partitions["is_partition"]
    return partitions if pc.all(is_there, min_count=0).as_py() else partitions.filter(is_there)
