"""Writes all families of all clusters, at most once for each snapshot, bounded in bytes."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from control.exposition.families import GROUPS, JOB, LEFT_OUT
from control.exposition.limits import USUAL, Limits
from control.exposition.series import (
    Family,
    Format,
    SeriesGroup,
    bytes_needed,
    label_texts,
    lines,
)
from control.exposition.source import ClusterSource
from control.views.snapshots.feed import SnapshotFeed

BYTES_MAX: Final = 64 << 20
"""Of one exposition; families that would go beyond it are left out whole."""
LEFT_OUT_BYTES: Final = 1 << 20
"""Kept for what tells that something is left out."""
FAMILIES: Final = "families"
LIMITED: Final = ("topics", "partitions", "groups", "group_topics", "group_partitions", FAMILIES)
"""Told also where nothing is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One exposition: the lines of each family, in both formats alike."""

    families: Sequence[tuple[Family, Sequence[bytes]]]
    took_s: float
    series: int

    def text(self, format: Format) -> bytes:  # noqa: A002
        """Without what ends the format: others may add families of their own."""
        parts = ((family.head(format), *texts) for family, texts in self.families)
        return b"".join(part for each in parts for part in each)


@dataclass(kw_only=True)
class Exposition:
    """Answers scrapers about these clusters. Safe to use from any thread."""

    feeds: Mapping[str, SnapshotFeed]
    """By the cluster's name; empty: it has none, and its id is told."""
    limits: Limits = USUAL
    bytes_max: int = BYTES_MAX
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _key: object = None
    _written: Written | None = None

    def written(self) -> Written:
        """The newest exposition; whoever comes while one is made waits for it."""
        with self._lock:
            now_ms = self.now_ms()
            newest = [(name, feed.current) for name, feed in self.feeds.items()]
            told = [(name, it, not it.is_stale(now_ms)) for name, it in newest]
            # Not the snapshots themselves: a page keeps none that is over.
            key = [(name, it.version, it.built_ms, current) for name, it, current in told]
            if self._written is None or key != self._key:
                self._written = None
                sources = [
                    ClusterSource(
                        name=name or it.cluster.cluster,
                        snapshot=it,
                        limits=self.limits,
                        is_current=current,
                    )
                    for name, it, current in told
                ]
                self._written, self._key = write(sources, bytes_max=self.bytes_max), key
            return self._written


def write(sources: Sequence[ClusterSource], *, bytes_max: int = BYTES_MAX) -> Written:
    """Everything about these clusters. What goes beyond ``bytes_max`` is left out and counted."""
    began_s = time.perf_counter()
    writer = _Writer(bytes_left=bytes_max)
    for group in GROUPS:
        for source in sources:
            writer.add(group, group.rows(source), source.name)
    writer.add(JOB, _job_table(sources))
    left = [(source.name, _left_out(source, writer.left_out[source.name])) for source in sources]
    writer.bytes_left = LEFT_OUT_BYTES
    for name, table in left:
        writer.add(LEFT_OUT, table, name)
    texts = [text for _, each in writer.told.values() for text in each]
    return Written(
        families=tuple(writer.told.values()),
        took_s=time.perf_counter() - began_s,
        series=sum(text.count(b"\n") for text in texts),
    )


@dataclass(kw_only=True)
class _Writer:
    """The families so far, and the bytes that are left for more."""

    bytes_left: int
    told: dict[str, tuple[Family, list[bytes]]] = field(default_factory=dict)
    left_out: defaultdict[str | None, Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """By cluster: rows whose labels are too long, and families beyond the bytes."""

    def add(self, group: SeriesGroup, table: pa.Table, cluster: str | None = None) -> None:
        """The lines of one cluster."""
        if not table.num_rows:
            return
        labels = label_texts(table, group.labels, cluster)
        left_out = self.left_out[cluster]
        left_out[group.of] = max(left_out[group.of], labels.null_count)
        for family in group.families:
            if bytes_needed(family, labels) > self.bytes_left:
                left_out[FAMILIES] += 1
                continue
            text = lines(family, labels, table)
            self.bytes_left -= len(text)
            if text:
                self.told.setdefault(family.name, (family, []))[1].append(text)


def _left_out(source: ClusterSource, written: Mapping[str, int]) -> pa.Table:
    """Per kind how many have no series: by the settings' limits, or by their labels."""
    told = source.left_out + Counter(written)
    kinds = dict.fromkeys((*LIMITED, *told))
    counts = [told[it] for it in kinds]
    return pa.table({"of": pa.array(kinds, pa.string()), "count": pa.array(counts, pa.int64())})


def _job_table(sources: Sequence[ClusterSource]) -> pa.Table:
    """One row, or none; what a batch told of its own time is over once figures are stale."""
    told = [(source.snapshot.cluster.health, source.is_current) for source in sources]
    known = [(health, current) for health, current in told if health is not None]
    if not known:
        return _JOB_SCHEMA.empty_table()
    health = max((it for it, _ in known), key=lambda it: it.written_ms)
    row = {name: getattr(health, name) for name in _JOB_SCHEMA.names}
    if not any(current for _, current in known):
        row |= dict.fromkeys(_OF_NOW)
    return pa.Table.from_pylist([row], schema=_JOB_SCHEMA)


_OF_NOW: Final = ("batch_ms", "delay_ms", "records_per_s")
_TOTALS: Final = ("bad_records_total", "lost_records_total", "late_rounds_total")
_JOB_SCHEMA: Final = pa.schema(
    {
        **dict.fromkeys(("written_ms", "batch_ms", "delay_ms", "state_rows"), pa.int64()),
        **dict.fromkeys(_TOTALS, pa.int64()),
        "records_per_s": pa.float64(),
    }
)
