"""Findings about operations: throttles that nobody needs, and what other tools do to running moves.

They rest on the cluster's configs and on the bus, which are read beside the figures, and are gone
as soon as neither can be read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from control.kafka.errors import KafkaPortError
from control.model.finding import Finding, Operation
from control.model.status import Severity
from control.model.watched_cluster import WatchedCluster
from control.move.events import EventKind
from control.move.state import OperationState
from control.operations.errors import OperationError
from control.operations.executor.throttles.left_throttles import (
    LeftThrottles,
    RunningMoves,
    SetThrottle,
)
from control.views.alert_tables import NO_ALERTS, AlertsTold
from control.views.snapshots.alert_findings import AlertWatch
from control.views.snapshots.error_log import ErrorLog
from control.views.snapshots.transaction_findings import transaction_findings

if TYPE_CHECKING:
    from control.kafka.admin.kafka_admin import KafkaAdmin
    from control.kafka.admin.transactions import OpenTransactions
    from control.operations.bus.client import MovesReader

READ_EVERY_S: Final = 15.0
ALERTS_EVERY_S: Final = 3.0
NOW_WITHIN_S: Final = 3.0
"""A command that tells findings once waits no longer for them, and half as long for the lists of
topics: what brokers have is told without them."""
NAMES_MAX: Final = 5
STOP_TIMEOUT_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


def operation_findings(
    states: Iterable[OperationState], left: Sequence[SetThrottle]
) -> Iterator[Finding]:
    """Throttles that are left, and running moves in which another tool has interfered."""
    if left:
        yield _left_finding(left)
    for state in states:
        told = [moment for moment in state.moments if moment.kind is EventKind.INTERFERED]
        if told and not state.is_finished:
            resumes = f"`partiscope moves resume {state.operation_id}` goes on with it"
            yield Finding(
                kind="move-interfered",
                severity=Severity.WARNING if state.stopped_for else Severity.NOTICE,
                subject=f"moves/{state.operation_id}",
                label=state.operation_id,
                title="stopped: another tool interferes"
                if state.stopped_for
                else "another tool interferes",
                # Words of others may hold braces, which templates would take for fields.
                reason="{what}",
                next_step=f"Find out who runs that tool; {resumes}"
                if state.stopped_for
                else "Find out who runs that tool: `kafka-reassign-partitions --verify` removes "
                "throttles, with `--preserve-throttles` it does not",
                since_ms=told[0].at_ms,
                facts={"what": told[-1].words},
            )


def _left_finding(left: Sequence[SetThrottle]) -> Finding:
    named = [f"{throttle.name} {throttle.words}" for throttle in left[:NAMES_MAX]]
    more = f"; and {len(left) - NAMES_MAX:,} more" if len(left) > NAMES_MAX else ""
    return Finding(
        kind="throttles-left",
        severity=Severity.WARNING,
        subject="brokers",
        label="replication",
        title="{count:plural:throttle} left behind",
        reason="No running move needs them, and they slow down replicas that catch up: {what}.",
        next_step="`partiscope brokers clear-throttles --dry-run` shows what it would remove",
        operation=Operation.CLEAR_THROTTLES,
        is_only_one=True,
        facts={"count": len(left), "what": "; ".join(named) + more},
    )


class OperationWatch:
    """Reads the findings of one cluster again and again, in a thread of its own."""

    def __init__(self, watched: WatchedCluster, bus: str | None) -> None:
        self.alerts: AlertsTold = NO_ALERTS
        self._of_operations: tuple[Finding, ...] = ()
        self._of_alerts: tuple[Finding, ...] = ()
        self._of_transactions: tuple[Finding, ...] = ()
        self.moves: tuple[OperationState, ...] = ()
        """Those that run; none while the bus cannot be read."""
        self._watched = watched
        self._bus = bus
        self._errors = ErrorLog(_log, lambda: time.time_ns() // 1_000_000)
        self._thread: threading.Thread | None = None
        self._end: Callable[[], object] = lambda: None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """About operations, alerts and transactions."""
        return *self._of_operations, *self._of_alerts, *self._of_transactions

    def start(self) -> None:
        """Read from now on."""
        loop = asyncio.new_event_loop()
        following = loop.create_task(self._follow())
        self._end = lambda: loop.call_soon_threadsafe(following.cancel)
        self._thread = threading.Thread(
            target=_run, args=(loop, following), name="operation-watch", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread and its connections."""
        if self._thread is not None and self._thread.is_alive():
            self._end()
            self._thread.join(STOP_TIMEOUT_S)

    async def _follow(self) -> None:
        async with (
            _sources(self._watched, self._bus) as (admin, moves),
            _alerts(self._watched, self._bus) as alerts,
            asyncio.TaskGroup() as all_three,
        ):
            all_three.create_task(self._follow_operations(admin, moves))
            all_three.create_task(self._follow_alerts(alerts))
            all_three.create_task(self._follow_transactions(admin))

    async def _follow_operations(self, admin: KafkaAdmin, moves: MovesReader | None) -> None:
        throttles = LeftThrottles(admin)
        while True:
            try:
                self._of_operations, self.moves = await _read(
                    admin, throttles, moves, self._watched
                )
            except Exception as error:  # noqa: BLE001 (its findings would stay for ever)
                self._of_operations, self.moves = (), ()
                self._errors.note("findings about operations cannot be read", error)
            await asyncio.sleep(READ_EVERY_S)

    async def _follow_alerts(self, alerts: AlertWatch | None) -> None:
        while alerts is not None:
            try:
                self._of_alerts, self.alerts = await _read_alerts(alerts)
            except Exception as error:  # noqa: BLE001 (they would stay for ever)
                self._of_alerts, self.alerts = (), NO_ALERTS
                self._errors.note("alerts cannot be read", error)
            await asyncio.sleep(ALERTS_EVERY_S)

    async def _follow_transactions(self, admin: KafkaAdmin) -> None:
        from control.kafka.admin.transactions import OpenTransactions

        transactions = OpenTransactions(admin)
        while True:
            try:
                self._of_transactions = await _read_transactions(transactions)
            except Exception as error:  # noqa: BLE001 (they would stay for ever)
                self._of_transactions = ()
                self._errors.note("transactions cannot be read", error)
            await asyncio.sleep(READ_EVERY_S)


def _run(loop: asyncio.AbstractEventLoop, following: asyncio.Task[None]) -> None:
    with suppress(asyncio.CancelledError):
        loop.run_until_complete(following)
    loop.close()


def operations_now(watched: WatchedCluster, bus: str | None) -> tuple[Finding, ...]:
    """The findings of one cluster, read now, as far as bus and cluster answer soon."""
    return () if watched.bootstrap is None else asyncio.run(_read_soon(watched, bus))


async def _read_soon(watched: WatchedCluster, bus: str | None) -> tuple[Finding, ...]:
    from control.kafka.admin.transactions import OpenTransactions

    async with (
        _sources(watched, bus) as (admin, moves),
        _alerts(watched, bus) as alerts,
    ):
        soon_s = NOW_WITHIN_S / 2
        throttles = LeftThrottles(admin, rates_within_s=soon_s, lists_within_s=soon_s)
        (found, _), (of_alerts, _), of_transactions = await asyncio.gather(
            _read(admin, throttles, moves, watched, within_s=NOW_WITHIN_S),
            _read_alerts(alerts, within_s=NOW_WITHIN_S),
            _read_transactions(OpenTransactions(admin), within_s=NOW_WITHIN_S),
        )
        return *found, *of_alerts, *of_transactions


@asynccontextmanager
async def _sources(
    watched: WatchedCluster, bus: str | None
) -> AsyncIterator[tuple[KafkaAdmin, MovesReader | None]]:
    """The cluster, and the bus where one is known; nothing is asked yet. Clients are loaded here:
    a screen is there before them."""
    from control.kafka.admin.kafka_admin import KafkaAdmin
    from control.kafka.connection.connections import settings_of
    from control.operations.bus.client import MovesReader

    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(KafkaAdmin.to(settings_of(watched.bootstrap or "")))
        moves = None
        if bus is not None:
            reader = MovesReader(bus, creates_topics=False, of=watched)
            moves = await stack.enter_async_context(reader)
        yield admin, moves


@asynccontextmanager
async def _alerts(watched: WatchedCluster, bus: str | None) -> AsyncIterator[AlertWatch | None]:
    """The alerts topic, where a bus is known; nothing is asked yet."""
    if bus is None:
        yield None
        return
    from control.kafka.connection.connections import settings_of
    from control.operations.bus.alert_records import AlertsTopic
    from control.operations.bus.topics import Bus

    async with Bus(settings_of(bus)) as opened:
        yield AlertWatch(AlertsTopic(opened), watched.name)


async def _read_alerts(
    alerts: AlertWatch | None, *, within_s: float | None = None
) -> tuple[tuple[Finding, ...], AlertsTold]:
    """Findings about alerts, and the alerts; none while the bus does not answer, or not in time."""
    with suppress(KafkaPortError, TimeoutError):
        async with asyncio.timeout(within_s):
            now_ms = time.time_ns() // 1_000_000
            return ((), NO_ALERTS) if alerts is None else await alerts.read(now_ms=now_ms)
    return (), NO_ALERTS


async def _read_transactions(
    transactions: OpenTransactions, *, within_s: float | None = None
) -> tuple[Finding, ...]:
    """Findings about transactions; none while the cluster does not answer, or not in time."""
    with suppress(KafkaPortError, TimeoutError):
        async with asyncio.timeout(within_s):
            found = await transactions.read()
            return tuple(transaction_findings(found, now_ms=time.time_ns() // 1_000_000))
    return ()


async def _read(
    admin: KafkaAdmin,
    throttles: LeftThrottles,
    moves: MovesReader | None,
    watched: WatchedCluster,
    *,
    within_s: float | None = None,
) -> tuple[tuple[Finding, ...], tuple[OperationState, ...]]:
    """Findings, and the moves that run. While the bus does not answer nobody knows which throttles
    are theirs: none is told then. ``within_s``: what is known by then is told."""
    states: list[OperationState] = []
    left: tuple[SetThrottle, ...] = ()
    with suppress(KafkaPortError, OperationError, TimeoutError):
        async with asyncio.timeout(within_s):
            states = [] if moves is None else await moves.list()
            running = RunningMoves.of(states, await admin.list_reassignments(), site=watched.site)
            left = await throttles.read(running)
    running_here = tuple(it for it in states if not it.is_finished)
    return tuple(operation_findings(states, left)), running_here
