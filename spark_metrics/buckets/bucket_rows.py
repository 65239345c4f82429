"""Records of a step, cut by buckets of partitions, which need nothing of each other.

Records of large rounds have rows of one bucket, and say of which one. Such records are handed out
as they are and read by whoever works on their bucket: side by side, and no more rows are in memory
than are worked on. Where some records have rows of several buckets, all are read and cut first.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from spark_metrics.decode.record_head import Head, NumberedHeads, bad_value
from spark_metrics.decode.record_rows import cut_rows, parse_rows
from spark_metrics.fold.bucket import Rows
from spark_metrics.state.rounds import SourceKey

BUCKET_ROWS_MAX: Final = (4_000, 400_000, 800_000)
"""Up to so many replicas and commits: one bucket; then two, four and eight.

A bucket's rows are in memory several times while it is under way, those of others once.
"""


@dataclass(slots=True, kw_only=True)
class BucketRows:
    """The records or rows of a step for one bucket."""

    brought: Rows | NumberedHeads
    bad: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What is kept of records of which some rows are bad, by their numbers: known once read."""

    def take(self) -> Rows:
        """Hand the rows over and forget them, for they are large."""
        taken, self.brought = self.brought, ()
        if isinstance(taken, Rows):
            return taken
        rows, self.bad = read_rows(taken)
        return rows


def buckets_for(rows: int, so_far: int) -> int:
    """The number of buckets for so many rows; never fewer than so far."""
    return max(1 << sum(rows > most for most in BUCKET_ROWS_MAX), so_far)


def read_rows(records: NumberedHeads) -> tuple[Rows, dict[int, dict[str, Any]]]:
    """All rows of these records, each replica and commit once, and what is kept of bad records."""
    replicas, commits = (parse_rows(kind, records) for kind in ("replicas", "commits"))
    numbers = replicas.bad_numbers | commits.bad_numbers
    bad = {
        number: bad_value(head, [*replicas.named.get(number, ()), *commits.named.get(number, ())])
        for number, head in records
        if number in numbers
    }
    return Rows(replicas=replicas.rows, commits=commits.rows), bad


def rows_of_bucket(
    records: NumberedHeads, bucket: int, buckets: int
) -> tuple[Rows, dict[int, dict[str, Any]]]:
    """The rows of one bucket in records of it and of several, and what is kept of bad records."""
    with_rows = _with_rows(records)
    rows, bad = read_rows(with_rows)
    if all(len(head.buckets(buckets)) == 1 for _, head in with_rows):
        return rows, bad
    return Rows(
        replicas=cut_rows(rows.replicas, buckets)[bucket],
        commits=cut_rows(rows.commits, buckets)[bucket],
    ), bad


def cut_by_bucket(records: NumberedHeads, buckets: int) -> list[BucketRows]:
    """The rows of each bucket."""
    with_rows = _with_rows(records)
    if buckets == 1:
        return [BucketRows(brought=with_rows)]
    parts: list[list[tuple[int, Head]]] = [[] for _ in range(buckets)]
    for number, head in with_rows:
        concerned = head.buckets(buckets)
        if len(concerned) > 1:
            return _cut_rows(*read_rows(with_rows), buckets)
        parts[concerned[0]].append((number, head))
    return [BucketRows(brought=part) for part in parts]


def count_rows(records: Iterable[tuple[int, Head]]) -> int:
    """Estimate how many replicas and commits the records tell: those of each source's largest
    round."""
    rounds: dict[tuple[SourceKey, int], int] = {}
    for _, head in records:
        assert head.part is not None
        key = head.part.source, head.part.round_ms
        rounds[key] = rounds.get(key, 0) + sum((head.rows or {}).values())
    largest: dict[SourceKey, int] = {}
    for (source, _), rows in rounds.items():
        largest[source] = max(largest.get(source, 0), rows)
    return sum(largest.values())


def _with_rows(records: NumberedHeads) -> NumberedHeads:
    return [(number, head) for number, head in records if any((head.rows or {}).values())]


def _cut_rows(whole: Rows, bad: dict[int, dict[str, Any]], buckets: int) -> list[BucketRows]:
    replicas, commits = (cut_rows(rows, buckets) for rows in (whole.replicas, whole.commits))
    return [
        BucketRows(brought=Rows(replicas=replicas[n], commits=commits[n]), bad={} if n else bad)
        for n in range(buckets)
    ]
