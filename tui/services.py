"""Services of the screens: all that they know comes through here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from control.model.fleet import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.past import PastReader

if TYPE_CHECKING:  # a Kafka client comes with it
    from control.operations.bus.journal import JournalLine


def wall_clock_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def no_journal() -> Sequence[JournalLine]:
    """Nothing is known to have been done."""
    return ()


class StoreReader(PastReader, Protocol):
    """Reader of charts and past tables (``spark_metrics.aggregates.AggregatesReader``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The feed of snapshots, the history behind it, and the cluster to act on."""

    feed: SnapshotFeed
    history: StoreReader
    watched: WatchedCluster
    bus: str | None
    """None: nobody carries out what takes time on this cluster from here."""
    journal: Callable[[], Sequence[JournalLine]] = no_journal
    """What was done to the cluster, as far as it is known by now; from any thread."""
    now_ms: Callable[[], int] = field(default=wall_clock_ms)

    @property
    def bootstrap(self) -> str:
        """Address of the cluster."""
        return self.watched.bootstrap or ""

    @property
    def is_read_only(self) -> bool:
        """Look, but change nothing."""
        return self.watched.is_read_only


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Another cluster: nothing of it is read before somebody goes there."""

    watched: WatchedCluster
    open: Callable[[], Services]
