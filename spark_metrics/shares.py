"""A wave cut into the shares of buckets of topics, which need nothing of each other.

Records of large rounds have rows of one bucket, and say of which one. Such records are handed out
as they are and read by whoever works on their bucket: side by side, and no more rows are in memory
than are worked on. Where some records have rows of several buckets, all are read and cut first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from spark_metrics.decode.record_head import Head, bad_value
from spark_metrics.decode.record_rows import cut_rows, parse_rows
from spark_metrics.rounds import SourceKey

Records = Sequence[tuple[int, Head]]
"""Samples with their numbers in the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What some records say (``schema.ROWS``)."""

    replicas: pa.Table
    commits: pa.Table
    bad: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What is kept of records of which some rows were bad, by their numbers."""


@dataclass(slots=True, kw_only=True)
class Share:
    """What a wave brings for one bucket."""

    bucket: int
    buckets: int
    has_commits: bool
    """Whether any bucket has some, in the wave or in the state."""
    brought: Rows | Records

    def take(self) -> Rows:
        """Its rows, which are forgotten with that, for they are large."""
        taken, self.brought = self.brought, ()
        return taken if isinstance(taken, Rows) else read_rows(taken)

    def file_of(self, state: Sequence[str]) -> str | None:
        """The file of the state that is this bucket's; None: the cut was another one before."""
        return state[self.bucket] if len(state) == self.buckets else None


def read_rows(records: Records) -> Rows:
    """All rows of these records, each replica and commit once."""
    replicas, commits = (parse_rows(kind, records) for kind in ("replicas", "commits"))
    numbers = replicas.bad_numbers | commits.bad_numbers
    return Rows(
        replicas=replicas.rows,
        commits=commits.rows,
        bad={number: bad_value(head) for number, head in records if number in numbers},
    )


def shares(records: Records, buckets: int, *, has_commits: bool) -> list[Share]:
    """A share for each bucket; ``has_commits``: whether the state has some."""
    has_commits = has_commits or any((head.rows or {}).get("commits") for _, head in records)
    return [
        Share(bucket=bucket, buckets=buckets, has_commits=has_commits, brought=brought)
        for bucket, brought in enumerate(_cut(records, buckets))
    ]


def rows_told(records: Iterable[tuple[int, Head]]) -> int:
    """About how many replicas and commits they tell of: of each source, in its largest round."""
    rounds: dict[tuple[SourceKey, int], int] = {}
    for _, head in records:
        assert head.part is not None
        key = SourceKey(head.part.cluster, head.part.broker), head.part.round_ms
        rounds[key] = rounds.get(key, 0) + sum((head.rows or {}).values())
    largest: dict[SourceKey, int] = {}
    for (source, _), rows in rounds.items():
        largest[source] = max(largest.get(source, 0), rows)
    return sum(largest.values())


def _cut(records: Records, buckets: int) -> Sequence[Rows | Records]:
    """What is of each bucket."""
    with_rows = [(number, head) for number, head in records if any((head.rows or {}).values())]
    if buckets == 1:
        return [with_rows]
    parts: list[list[tuple[int, Head]]] = [[] for _ in range(buckets)]
    for number, head in with_rows:
        if head.bucket is None:
            return _cut_rows(read_rows(with_rows), buckets)
        parts[head.bucket % buckets].append((number, head))
    return parts


def _cut_rows(whole: Rows, buckets: int) -> list[Rows]:
    replicas, commits = (cut_rows(rows, buckets) for rows in (whole.replicas, whole.commits))
    return [
        Rows(replicas=replicas[n], commits=commits[n], bad={} if n else whole.bad)
        for n in range(buckets)
    ]
