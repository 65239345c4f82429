"""The plan of a batch: what the fold of each bucket is told, and what it hands back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from spark_metrics.decode.record_head import Head
from spark_metrics.fold.bucket import Around
from spark_metrics.fold.sums import Sums
from spark_metrics.state.job_state import JobState
from spark_metrics.state.source_clocks import Clocks, Correction
from spark_metrics.store.layout import HistoryFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD: Final = ("partition", "offset", "unix_millis(timestamp) AS timestamp_ms")
"""SQL of a record beside its value."""
WHOLE_VALUE: Final = "coalesce(value, CAST('' AS BINARY))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Records of at most one round of each source, and what is known when they are folded."""

    records: list[tuple[int, Head]]
    """With their numbers in the batch."""
    around: Around


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldPlan:
    """The same for every bucket of a batch."""

    store: str
    version: int
    """The one that is being written."""
    buckets: int
    now: Mapping[str, Sequence[str]]
    """Files of the version before."""
    is_cut_alike: bool
    """Whether the rows in these were put into buckets as they are now."""
    before: JobState
    """What was known before the batch."""
    clocks: Clocks
    corrections: Sequence[Correction]
    arounds: Sequence[Around]
    """Of each wave."""


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

    buckets: Sequence[FoldedBucket]
    bad: Sequence[Mapping[str, Any]]
    """What is kept of each record that is bad, or has bad rows; by partition and offset."""


class BucketFold(Protocol):
    """Folds the buckets of a batch, wherever that is done."""

    @property
    def value(self) -> str:
        """SQL of what the driver reads of a record's value."""

    def fold(
        self, plan: FoldPlan, batch: "DataFrame", heads: list[Head], waves: Sequence[Wave]
    ) -> FoldedBatch:
        """Fold and write all buckets; ``heads`` and ``waves`` are emptied, for they are large."""
