"""One watcher of the store for all screens of a process.

A thread looks at the store's version every interval, rebuilds the snapshot when it changed, and
tells its subscribers. The last good snapshot is kept whatever happens: an unreadable store is a
finding on the screen, never an exception in it, and so is an error that nobody expected; figures
age meanwhile, and come again by themselves. Ten screens share one feed; none waits for it.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Final

from control.collector.report_writer import WatchReport
from control.kafka.connection.broker_probe import BrokerProbe
from control.model.finding import Finding, Operation, sorted_findings
from control.model.freshness import doubtful_brokers
from control.model.ids import ClusterId
from control.model.job_health import find_damaged_history
from control.model.status import Severity
from control.model.watched_cluster import WatchedCluster
from control.views.alert_tables import NO_ALERTS
from control.views.plan_costs import NO_COSTS, PlanCosts
from control.views.snapshots.collector_findings import report_watch
from control.views.snapshots.error_log import ErrorLog
from control.views.snapshots.operation_findings import OperationWatch
from control.views.snapshots.process_memory import give_back
from control.views.snapshots.snapshot import STORE_KIND, OperatorSnapshot, build_snapshot
from control.views.snapshots.store import StoreReader
from spark_metrics.window.aggregates import MetricsError

INTERVAL_S: Final = 0.25
SUBSCRIBERS_MAX: Final = 1_000
REBUILD_AFTER_MS: Final = 5_000
"""Even an unchanged store is judged anew this often: what it holds grows stale. Clusters that are
sampled slowly twice their interval later, lest each version be judged just before the next."""
RETRY_INTERVALS: Final = 4
"""While figures cannot be read the store is looked at so many times less often: each look may
cost as much as a new version."""
STOP_TIMEOUT_S: Final = 5.0

Listener = Callable[[OperatorSnapshot], None]

_log: Final = logging.getLogger(__name__)


class SnapshotFeed:
    """Watches a store. Safe to use from any thread; listeners run in the one that saw
    the news, mostly the feed's own."""

    def __init__(
        self,
        reader: StoreReader,
        *,
        interval_s: float = INTERVAL_S,
        cluster: ClusterId | None = None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        watch: Callable[[], WatchReport | None] = lambda: None,
        history: StoreReader | None = None,
        is_read_only: bool = False,
        unwatched: str = "",
        bootstrap: str | None = None,
        operations: OperationWatch | None = None,
        plan_costs: PlanCosts = NO_COSTS,
    ) -> None:
        """``bootstrap``: where the cluster is asked who answers while its figures are old;
        ``operations``: findings about operations; ``plan_costs``: of plans that findings lead
        to."""
        self._plan_costs = plan_costs
        self._operations = operations
        self._probe = BrokerProbe(bootstrap, cluster)
        self._answering: frozenset[int] | None = None
        self._reader = reader
        self._interval_s = interval_s
        self._cluster = cluster
        self._now_ms = now_ms
        self._watch_report = watch
        self._history = history
        self._is_read_only = is_read_only
        self._unwatched = unwatched
        self._listeners: dict[int, Listener] = {}
        self._next_id = 0
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._current = build_snapshot(
            {},
            version=0,
            now_ms=now_ms(),
            cluster=cluster,
            is_read_only=is_read_only,
            unwatched=unwatched,
        )
        self._judged_ms = self._current.built_ms
        """When the store was last judged, whether or not something failed since."""
        self._failure: Finding | None = None
        self._errors = ErrorLog(_log, now_ms)

    @property
    def current(self) -> OperatorSnapshot:
        """The newest good snapshot; empty (``is_empty``) before the store has anything."""
        return self._current

    def start(self) -> None:
        """Look at the store once, then keep watching it in a thread. Starting twice is fine."""
        with self._lock:
            if self._thread is not None:
                return
            if self._operations is not None:
                self._operations.start()
            self.refresh()
            self._thread = threading.Thread(target=self._watch, name="snapshot-feed", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._operations is not None:
            self._operations.stop()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have ``listener`` called with every new snapshot; returns how to end that."""
        if len(self._listeners) >= SUBSCRIBERS_MAX:
            raise RuntimeError(f"more than {SUBSCRIBERS_MAX} subscribers of one feed")
        self._next_id += 1
        own = self._next_id
        self._listeners[own] = listener
        return lambda: void(self._listeners.pop(own, None))

    async def snapshots(self) -> AsyncIterator[OperatorSnapshot]:
        """The current snapshot, then each newer one. A slow taker skips to the newest."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def wake(_: OperatorSnapshot) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is gone
                loop.call_soon_threadsafe(changed.set)

        unsubscribe = self.subscribe(wake)
        taken: OperatorSnapshot | None = None
        try:
            while True:
                if (current := self.current) is not taken:  # It may be taken before it is told.
                    taken = current
                    yield current
                await changed.wait()
                changed.clear()
        finally:
            unsubscribe()

    def wait_for(
        self, is_there: Callable[[OperatorSnapshot], bool], *, timeout_s: float
    ) -> OperatorSnapshot:
        """Wait in this thread until a snapshot passes.

        Raises:
            TimeoutError: none did in time.
        """
        changed = threading.Event()
        unsubscribe = self.subscribe(lambda _: changed.set())
        deadline = time.monotonic() + timeout_s
        try:
            while not is_there(self.current):
                if not changed.wait(max(deadline - time.monotonic(), 0.0)):
                    raise TimeoutError(f"no such snapshot within {timeout_s} s")
                changed.clear()
            return self.current
        finally:
            unsubscribe()

    def refresh(self) -> bool:
        """Look at the store now; True when there is something new, which listeners are told."""
        with self._refreshing:
            changed = self._take_new()
        if changed:
            self._notify()
        return changed

    def _take_new(self) -> bool:
        new, failure = None, None
        try:
            new = self._read()
        except MetricsError as error:
            failure = _unreadable(error, now_ms=self._now_ms())
        except Exception as error:  # noqa: BLE001 (a watcher that dies leaves screens frozen)
            self._errors.note("the snapshot feed cannot read figures; it tries again", error)
            failure = _unexpected(error, now_ms=self._now_ms())
        changed = new is not None or _facts(failure) != _facts(self._failure)
        if not changed:
            return False
        self._failure = failure
        if new is not None:
            self._current, self._judged_ms = new, new.built_ms
        else:
            self._current = self._with(failure)
        return True

    def _read(self) -> OperatorSnapshot | None:
        """The store's state when it is new, or when the old one must be judged again."""
        now_ms = self._now_ms()
        version = self._reader.version() or 0
        due_ms = max(REBUILD_AFTER_MS, 2 * self._current.interval_ms)
        doubtful = doubtful_brokers(self._current.cluster, now_ms=now_ms)
        answering = self._probe.answering(doubtful)
        is_due = now_ms - self._judged_ms >= due_ms or self._is_silence_due(now_ms)
        is_due |= answering != self._answering
        if version == self._current.version and not (is_due and version):
            return None
        aggregates = self._reader.now()
        if aggregates is None:
            return None
        snapshot = build_snapshot(
            aggregates.tables,
            version=aggregates.version,
            now_ms=now_ms,
            cluster=self._cluster,
            earlier=None if self._current.is_empty else self._current.findings,
            earlier_isr=None if self._current.is_empty else self._current.short_isr,
            watch=self._watch_report(),
            history=self._history,
            is_read_only=self._is_read_only,
            unwatched=self._unwatched,
            answering=answering,
            operations=(
                *(() if self._operations is None else self._operations.findings),
                *find_damaged_history({} if self._history is None else self._history.damaged_files),
            ),
            moves=() if self._operations is None else self._operations.moves,
            alerts=NO_ALERTS if self._operations is None else self._operations.alerts,
            plan_costs=self._plan_costs,
        )
        self._answering = answering
        give_back()
        return snapshot

    def _is_silence_due(self, now_ms: int) -> bool:
        """Whether the metrics job has become silent since the snapshot was built."""
        due_ms = self._current.evidence.freshness.due_ms
        return due_ms is not None and self._judged_ms < due_ms <= now_ms

    def _watch(self) -> None:
        while not self._stopping.wait(self._wait_s):
            self.refresh()

    @property
    def _wait_s(self) -> float:
        return self._interval_s * (1 if self._failure is None else RETRY_INTERVALS)

    def _notify(self) -> None:
        for listener in tuple(self._listeners.values()):
            try:
                listener(self._current)
            except Exception as error:  # noqa: BLE001 (one broken screen must not stop the others)
                self._errors.note("a listener of the snapshot feed failed", error)

    def _with(self, failure: Finding | None) -> OperatorSnapshot:
        """The last good figures, and that there are no newer ones. It is another snapshot for the
        screens, so it has a time of its own."""
        kept = [item for item in self._current.findings if item.kind != STORE_KIND]
        findings = kept if failure is None else sorted_findings([*kept, failure])
        return replace(self._current, findings=tuple(findings), built_ms=self._now_ms())


WHY_CHARACTERS: Final = 300
"""Of an unexpected error's words that a finding tells."""


def void(_: object) -> None:
    """Let a lambda that only acts return nothing."""


def _unreadable(error: MetricsError, *, now_ms: int) -> Finding:
    return Finding(
        kind=STORE_KIND,
        severity=Severity.WARNING,
        subject="overview",
        label="metrics store",
        title="cannot be read",
        reason="{what}: {why}",
        next_step=error.what_next,
        operation=Operation.OUTSIDE,
        since_ms=now_ms,
        facts={"what": error.what, "why": error.why},
    )


def _unexpected(error: Exception, *, now_ms: int) -> Finding:
    return Finding(
        kind=STORE_KIND,
        severity=Severity.CRITICAL,
        subject="overview",
        label="figures",
        title="cannot be read",
        reason="{error}: {why}. The figures shown are the last that could be read",
        next_step="It is tried again every second; this is a fault of Partiscope, please report it",
        operation=Operation.OUTSIDE,
        since_ms=now_ms,
        facts={"error": type(error).__name__, "why": str(error)[:WHY_CHARACTERS] or "no reason"},
    )


def _facts(finding: Finding | None) -> object:
    return None if finding is None else finding.facts


def feed_of(reader: StoreReader, watched: WatchedCluster, *, bus: str | None) -> SnapshotFeed:
    """The feed of one watched cluster, as both screens follow it."""
    return SnapshotFeed(
        reader,
        cluster=watched.cluster_id,
        now_ms=reader.now_ms,
        watch=report_watch(bus if watched.is_collected else None, watched.cluster_id),
        history=reader,
        is_read_only=watched.is_read_only,
        unwatched=watched.unwatched,
        bootstrap=watched.bootstrap,
        operations=None if watched.bootstrap is None else OperationWatch(watched, bus),
        plan_costs=NO_COSTS if watched.bootstrap is None else PlanCosts(watched, bus),
    )
