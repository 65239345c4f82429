"""How far a produce session is: counts, ack latencies, offsets, errors by kind."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from control.kafka.records.producer import Delivery

WAITS_TOLD_S: Final = 3.0
"""An answer that takes longer is told while it is waited for."""
LATENCIES_MAX: Final = 20_000
"""Percentiles cover the newest acknowledgements only."""
ERRORS_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Acknowledgement times in ms."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Records whose answers take long: how many, for how long, from whom, and how long at most."""

    records: int
    seconds: float
    topic: str
    partitions: tuple[int, ...]
    """Empty: the client has not chosen yet."""
    seconds_max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceProgress:
    """A session at one moment; the last one has `is_done`."""

    sent: int
    acked: int
    failed: int
    total: int
    elapsed_s: float
    records_per_s: float
    latencies: Latencies | None
    per_partition: dict[int, int]
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    """First and last acknowledged offset of each partition; none with acks 0."""
    histogram_ms: tuple[tuple[float, int], ...]
    """(upper edge in ms, records) with edges doubling."""
    last: Delivery | None
    errors: tuple[str, ...]
    """The first ``ERRORS_MAX``, in full."""
    errors_by_kind: dict[str, int] = field(default_factory=dict)
    """How many records failed for each reason, the most frequent first."""
    is_done: bool
    is_stopped: bool = False
    """Somebody ended it before all was sent."""
    unanswered: int = 0
    """Sent, and neither acknowledged nor failed: nobody knows whether they were written."""
    waiting: Waiting | None = None


@dataclass(slots=True)
class Tally:
    """Counts and latencies of a session's records."""

    sent: int = 0
    acked: int = 0
    failed: int = 0
    refused: int = 0
    """Failed without being sent."""
    unanswered: int = 0
    asked: dict[int, tuple[float, int | None]] = field(default_factory=dict)
    """By number, the oldest first: since when it is under way, and to which partition."""
    last: Delivery | None = None
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_MAX))
    per_partition: Counter[int] = field(default_factory=Counter)
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def count(self, landed: Delivery) -> None:
        """One more was acknowledged."""
        self.acked += 1
        self.last = landed
        self.latencies.append(landed.latency_ms)
        self.per_partition[landed.partition] += 1
        if landed.offset >= 0:
            first, last = self.offsets.get(landed.partition, (landed.offset, landed.offset))
            self.offsets[landed.partition] = min(first, landed.offset), max(last, landed.offset)

    def waiting(self, topic: str, *, now_s: float, seconds_max: float) -> Waiting | None:
        """Those whose answers take long; None: there are none."""
        late = [to for since_s, to in self.asked.values() if now_s - since_s > WAITS_TOLD_S]
        if not late:
            return None
        oldest_s = next(iter(self.asked.values()))[0]
        return Waiting(
            records=len(late),
            seconds=now_s - oldest_s,
            topic=topic,
            partitions=tuple(sorted({to for to in late if to is not None})),
            seconds_max=seconds_max,
        )

    def fail(self, words: str, kind: str) -> None:
        """One more will not be acknowledged."""
        self.failed += 1
        self.kinds[kind] += 1
        if len(self.errors) < ERRORS_MAX:
            self.errors.append(words)


def latencies_of(values_ms: Any) -> Latencies | None:
    """Percentiles of acknowledgement times; null when there are none."""
    if not values_ms:
        return None
    p50, p95, p99 = np.percentile(np.fromiter(values_ms, dtype=np.float64), (50, 95, 99))
    return Latencies(p50_ms=float(p50), p95_ms=float(p95), p99_ms=float(p99), max_ms=max(values_ms))


def histogram_of(values_ms: Any) -> tuple[tuple[float, int], ...]:
    """Counts in buckets whose upper edges double from 0.25 ms."""
    if not values_ms:
        return ()
    values = np.fromiter(values_ms, dtype=np.float64)
    buckets = np.maximum(0, np.ceil(np.log2(np.maximum(values, 1e-3) / 0.25))).astype(int)
    counts = np.bincount(buckets)
    return tuple((0.25 * 2.0**i, int(count)) for i, count in enumerate(counts))
