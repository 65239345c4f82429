"""One watcher of the store for all screens of a process.

A thread looks at the store's version every interval, rebuilds the snapshot when it changed, and
tells its subscribers. The last good snapshot is kept whatever happens: an unreadable store is a
finding on the screen, never an exception in it. Ten screens share one feed; none waits for it.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from control.kafka.collector.report import WatchReport
from control.model.findings import Finding, sorted_findings
from control.model.ids import ClusterId
from control.model.status import Severity
from control.views.memory import give_back
from control.views.series import HistoryReader
from control.views.snapshot import OperatorSnapshot, build_snapshot
from spark_metrics.aggregates import MetricsError

INTERVAL_S: Final = 0.25
SUBSCRIBERS_MAX: Final = 1_000
REBUILD_AFTER_MS: Final = 5_000
"""Even an unchanged store is judged anew this often: what it holds grows stale. Clusters that are
sampled slowly twice their interval later, lest each version be judged just before the next."""
STOP_TIMEOUT_S: Final = 5.0

Listener = Callable[[OperatorSnapshot], None]

_log: Final = logging.getLogger(__name__)


class NowReader(Protocol):
    """What the feed asks of the store (``spark_metrics.aggregates.AggregatesReader``)."""

    def version(self) -> int | None: ...

    def now(self) -> Any: ...


class SnapshotFeed:
    """Watches a store. Safe to use from any thread; listeners run in the one that saw
    the news, mostly the feed's own."""

    def __init__(
        self,
        reader: NowReader,
        *,
        interval_s: float = INTERVAL_S,
        cluster: ClusterId | None = None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        watch: Callable[[], WatchReport | None] = lambda: None,
        history: HistoryReader | None = None,
        is_read_only: bool = False,
        unwatched: str = "",
    ) -> None:
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
        self._failure: Finding | None = None

    @property
    def current(self) -> OperatorSnapshot:
        """The newest good snapshot; empty (``is_empty``) before the store has anything."""
        return self._current

    def start(self) -> None:
        """Look at the store once, then keep watching it in a thread. Starting twice is fine."""
        with self._lock:
            if self._thread is not None:
                return
            self.refresh()
            self._thread = threading.Thread(target=self._watch, name="snapshot-feed", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
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
        try:
            while True:
                yield self.current
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
        try:
            new = self._read()
            failure = None
        except MetricsError as error:
            new, failure = None, _unreadable(error, now_ms=self._now_ms())
        changed = new is not None or _kind(failure) != _kind(self._failure)
        if not changed:
            return False
        self._failure = failure
        base = new or self._without_failure()
        self._current = base if failure is None else _with_finding(base, failure)
        return True

    def _read(self) -> OperatorSnapshot | None:
        """The store's state when it is new, or when the old one must be judged again."""
        now_ms = self._now_ms()
        version = self._reader.version() or 0
        due_ms = max(REBUILD_AFTER_MS, 2 * self._current.interval_ms)
        is_due = now_ms - self._current.built_ms >= due_ms or self._is_silence_due(now_ms)
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
        )
        give_back()
        return snapshot

    def _is_silence_due(self, now_ms: int) -> bool:
        """Whether the metrics job has become silent since the snapshot was built."""
        due_ms = self._current.evidence.freshness.due_ms
        return due_ms is not None and self._current.built_ms < due_ms <= now_ms

    def _watch(self) -> None:
        while not self._stopping.wait(self._interval_s):
            try:
                self.refresh()
            except Exception:  # noqa: BLE001 (a watcher that dies leaves screens frozen)
                _log.exception("the snapshot feed failed to refresh; it goes on")

    def _notify(self) -> None:
        for listener in tuple(self._listeners.values()):
            try:
                listener(self._current)
            except Exception:  # noqa: BLE001 (one broken screen must not stop the others)
                _log.exception("a listener of the snapshot feed failed")

    def _without_failure(self) -> OperatorSnapshot:
        kept = tuple(item for item in self._current.findings if item.kind != STORE_KIND)
        return replace(self._current, findings=kept)


STORE_KIND: Final = "store-unreadable"


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
        since_ms=now_ms,
        facts={"what": error.what, "why": error.why},
    )


def _with_finding(snapshot: OperatorSnapshot, finding: Finding) -> OperatorSnapshot:
    return replace(snapshot, findings=sorted_findings([*snapshot.findings, finding]))


def _kind(finding: Finding | None) -> str | None:
    return None if finding is None else finding.kind
