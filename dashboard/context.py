"""Context of every view of the page: the feed, the history, the operations of its cluster."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from control.model.watched_cluster import WatchedCluster
from control.views.series import Span
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.snapshots.store import StoreReader
from control.views.tables.journal import Mark, marks
from control.views.times import TimeError, span_of
from dashboard.cluster_actions import ClusterActions
from dashboard.server.cluster_routing import chosen_cluster
from dashboard.server.table_prefetch import TablePrefetch
from dashboard.settings import DashboardSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """One watched cluster: its figures, and who acts on it."""

    watched: WatchedCluster
    feed: SnapshotFeed
    actions: ClusterActions
    prefetch: TablePrefetch = field(default_factory=TablePrefetch)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """Shared by all views and all browsers; holds no state of either."""

    clusters: Mapping[str, ClusterContext]
    """By the cluster's name; the usual one first."""
    reader: StoreReader
    settings: DashboardSettings
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)

    @property
    def chosen(self) -> ClusterContext:
        """That of the cluster which the asking page is about."""
        return self.clusters.get(chosen_cluster.get()) or next(iter(self.clusters.values()))

    @property
    def watched(self) -> WatchedCluster:
        """The cluster which the asking page is about."""
        return self.chosen.watched

    @property
    def feed(self) -> SnapshotFeed:
        """Its figures."""
        return self.chosen.feed

    @property
    def actions(self) -> ClusterActions:
        """The actions on its cluster."""
        return self.chosen.actions

    @property
    def snapshot(self) -> OperatorSnapshot:
        """The newest there is."""
        return self.feed.current

    @property
    def cluster(self) -> str:
        """Id of the watched cluster."""
        return self.snapshot.cluster.cluster

    def span(self, time: Mapping[str, str] | None = None) -> Span:
        """The charts' stretch of time: ``range`` long up to ``at``, as the page's links have
        them; the last ten minutes without, or where they cannot be read."""
        wanted, now_ms = time or {}, self.now_ms()
        try:
            return span_of(wanted.get("at", ""), wanted.get("range", ""), now_ms=now_ms)
        except TimeError:
            return span_of("", "", now_ms=now_ms)

    def marks(self, span: Span) -> Sequence[Mark]:
        """The journal's marks on this stretch."""
        return marks(self.actions.moves.journal, span)
