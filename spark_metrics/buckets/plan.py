"""The plan of a batch: what the fold of each bucket is told, and what it hands back."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from spark_metrics.buckets.judged_batch import Judged, StateBefore
from spark_metrics.fold.sums import Sums
from spark_metrics.store.layout import HistoryFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD: Final = (
    *("partition", "offset", "unix_millis(timestamp) AS timestamp_ms"),
    "coalesce(value, CAST('' AS BINARY)) AS value",
)
"""SQL of the fields of ``KafkaRecord``."""


class Phases:
    """Times by name, in order of first use; what is entered again adds up."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the time spent within."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            spent_s = time.perf_counter() - began_s
            self._seconds[name] = self._seconds.get(name, 0.0) + spent_s

    @property
    def ms(self) -> dict[str, int]:
        return {name: round(1_000 * spent_s) for name, spent_s in self._seconds.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """The same for every bucket of a batch."""

    store: str
    version: int
    """The one that is being written."""
    buckets: int
    now: Mapping[str, Sequence[str]]
    """Files of the version before."""
    before: StateBefore


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedBucket:
    """A bucket that is folded and written: small, but for points that are not written yet."""

    paths: Mapping[str, str]
    state_rows: int
    sums: Sums
    points: Mapping[str, pa.Table] = field(default_factory=dict)
    history: Mapping[str, Sequence[HistoryFile]] = field(default_factory=dict)
    """Points that are written already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedBatch:
    """All buckets, in their order."""

    records: int
    """How many no earlier batch has taken in."""
    judged: Judged
    """All records, judged; heads and steps may be emptied, for they are large."""
    buckets: Sequence[FoldedBucket]
    bad: Sequence[Mapping[str, Any]]
    """What is kept of each record that is bad, or has bad rows; by partition and offset."""


class BucketFold(Protocol):
    """Folds the buckets of a batch, wherever that is done."""

    def fold(self, plan: FoldPlan, batch: "DataFrame", phases: Phases) -> FoldedBatch | None:
        """Fold and write all buckets, more of them where there are many rows.

        None: the store has all of the records already.
        """
