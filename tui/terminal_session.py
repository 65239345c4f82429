"""The session of the terminal: the shown cluster and moment, and what may be done there.

No Textual here. Screens ask the session; only the navigator and the app change it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from control.access.login import acting
from control.model.watched_cluster import WatchedCluster
from control.move.journal_lines import JournalLine
from control.views.paths import ViewPath
from control.views.series import Span
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.past import look_back
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.snapshots.store import StoreReader
from control.views.times import RANGE_DEFAULT, RANGES, span_of

if TYPE_CHECKING:  # a Kafka client comes with them
    from control.operations.operation_session import OperationSession

Heard = Callable[[SnapshotFeed, OperatorSnapshot], None]


def wall_clock_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def no_journal() -> Sequence[JournalLine]:
    """Nothing is known to have been done."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The feed of snapshots of one cluster, the history behind it, and its bus."""

    feed: SnapshotFeed
    history: StoreReader
    watched: WatchedCluster
    bus: str | None
    """None: nobody carries out what takes time on this cluster from here."""
    journal: Callable[[], Sequence[JournalLine]] = no_journal
    """What was done to the cluster, as far as it is known by now; from any thread."""
    now_ms: Callable[[], int] = field(default=wall_clock_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCluster:
    """A cluster that is not shown: nothing of it is read before somebody goes there."""

    watched: WatchedCluster
    open: Callable[[], Services]


class ChartRange:
    """How much of the past charts show, such as ``6h``: the same on every view."""

    def __init__(self) -> None:
        self.words = ""
        """As a path has it; empty: the usual one."""

    def take(self, words: str) -> None:
        """From now on this range.

        Raises:
            TimeError: one that cannot be read; the old one stays.
        """
        span_of("", words, now_ms=0)
        self.words = "" if words == RANGE_DEFAULT else words

    def zoom(self, step: int) -> bool:
        """The next longer range (-1: shorter) of those that one chooses from; False: there is
        none."""
        names = list(RANGES)
        length = _length_ms(self.words or RANGE_DEFAULT)
        there = [name for name in names[::step] if (_length_ms(name) - length) * step > 0]
        if there:
            self.take(there[0])
        return bool(there)

    def span(self, *, until_ms: int) -> Span:
        """The stretch of charts that end there."""
        return span_of("", self.words, now_ms=until_ms)

    @property
    def title(self) -> str:
        """``last 10 minutes``."""
        range_ = self.words or RANGE_DEFAULT
        return f"last {RANGES.get(range_, range_)}"


class TerminalSession:
    """The shown cluster and moment, the range of charts, and what may be done here."""

    def __init__(self, services: Services, others: Sequence[OtherCluster] = ()) -> None:
        self.services = services
        """Of the shown cluster."""
        here = OtherCluster(watched=services.watched, open=lambda: services)
        self._clusters = {each.watched.name: each for each in (here, *others)}
        self._opened = {services.watched.name: services}
        self._operations: OperationSession | None = None
        self._sending: dict[str, OperationSession] = {}
        """Of clusters that are not shown, while records are sent there."""
        self._heard: Heard = lambda feed, snapshot: None
        self._stop_listening: Callable[[], None] = lambda: None
        self.range = ChartRange()
        self.at_ms: int | None = None
        """The past moment that is shown; None: now."""
        self._past: OperatorSnapshot | None = None
        self._held: OperatorSnapshot | None = None

    @property
    def snapshot(self) -> OperatorSnapshot:
        """The snapshot that the screens show: a past one, the one of the pause, or the newest."""
        return self._past or self._held or self.services.feed.current

    @property
    def denied(self) -> Mapping[str, str]:
        """Per operation of the catalogue that may not be done here, why not."""
        return self.denied_in(self.snapshot)

    def denied_in(self, snapshot: OperatorSnapshot) -> Mapping[str, str]:
        """The same by another snapshot, such as one that has just come."""
        login = acting()
        roles = {} if login is None else login.refusals(self.watched.name)
        return {**snapshot.denied_operations, **roles}

    def denied_words(self, operation: str) -> str:
        """Why an operation of the catalogue may not be done; empty: it may."""
        return self.denied.get(operation, "")

    @property
    def is_paused(self) -> bool:
        """Figures are held still."""
        return self._held is not None

    @property
    def is_live(self) -> bool:
        """A newer snapshot is shown as soon as it is there."""
        return self.at_ms is None and not self.is_paused

    @property
    def watched(self) -> WatchedCluster:
        """The shown cluster."""
        return self.services.watched

    @property
    def now_ms(self) -> int:
        """The clock of the services, in milliseconds since the epoch."""
        return self.services.now_ms()

    @property
    def operations(self) -> OperationSession:
        """Acts on the shown cluster; made when first needed, in the loop of the screens."""
        if self._operations is None:
            from control.operations.operation_session import (
                OperationSession,  # a Kafka client comes with it
            )

            services = self.services
            self._operations = OperationSession(
                services.watched,
                bus=services.bus,
                denied=lambda: self._snapshot_of(services).denied_operations,
            )
        return self._operations

    @property
    def clusters(self) -> tuple[WatchedCluster, ...]:
        """All watched clusters, the shown one first."""
        here = self.watched
        others = (each.watched for each in self._clusters.values())
        return (here, *(each for each in others if each.name != here.name))

    @property
    def every_services(self) -> tuple[Services, ...]:
        """Services of all clusters, in the order in which they are watched."""
        return tuple(map(self._services_of, self._clusters))

    def go_to(self, cluster: str) -> OperationSession | None:
        """Show another cluster, now and live; answers the operations of the one before, to be
        closed. Where records are sent they are kept: the send goes on."""
        left, self._operations = self._operations, self._sending.pop(cluster, None)
        if left is not None and left.sends.running():
            self._sending[self.watched.name], left = left, None
        self.services = self._services_of(cluster)
        self._held = None
        self.go_to_now()
        self.services.feed.start()
        self.listen(self._heard)
        return left

    def listen(self, heard: Heard) -> None:
        """Have ``heard`` called with each newer snapshot of the shown cluster, in the feed's
        thread."""
        self._stop_listening()
        feed, self._heard = self.services.feed, heard
        self._stop_listening = feed.subscribe(partial(heard, feed))

    def read_past(self, at_ms: int) -> Callable[[], OperatorSnapshot]:
        """A reader of the shown cluster at a moment, to be called in any thread.

        Raises (when it is called):
            NothingKeptError: nothing is kept of that moment.
            StoreUnreadableError: there is a store, but it cannot be read.
        """
        services = self.services
        cluster = services.feed.current.cluster.cluster
        return partial(
            look_back, services.history, cluster=cluster, at_ms=at_ms, now_ms=services.now_ms()
        )

    def show_past(self, at_ms: int, past: OperatorSnapshot) -> None:
        """Show that moment until another one is asked for."""
        self.at_ms, self._past = at_ms, past

    def go_to_now(self) -> None:
        """Back from the past."""
        self.at_ms = self._past = None

    def pause(self) -> None:
        """Hold the figures still, or go on; in the past: back to now."""
        is_held = self.is_paused if self.at_ms is not None else not self.is_paused
        self.go_to_now()
        self._held = self.services.feed.current if is_held else None

    def link_of(self, path: ViewPath) -> str:
        """A path for others: with the moment, where it is not now, the range of charts, and the
        cluster where several are watched."""
        query = dict(path.query)
        if self.range.words:
            query["range"] = self.range.words
        if self.at_ms is not None:
            moment = datetime.fromtimestamp(self.at_ms // 1000, tz=UTC)
            query["at"] = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
        if len(self._clusters) > 1:
            query["cluster"] = self.watched.name
        return str(replace(path, query=query))

    async def close(self) -> None:
        """Leave the feed and the cluster."""
        self._stop_listening()
        for operations in filter(None, (self._operations, *self._sending.values())):
            await operations.__aexit__()

    def _snapshot_of(self, services: Services) -> OperatorSnapshot:
        return self.snapshot if services is self.services else services.feed.current

    def _services_of(self, name: str) -> Services:
        if name not in self._opened:
            self._opened[name] = self._clusters[name].open()
        return self._opened[name]


def _length_ms(words: str) -> int:
    span = span_of("", words, now_ms=0)
    return span.until_ms - span.since_ms
