"""The journal: every change that a screen or script made, with who, when, why, from what to what.

A direct operation writes two lines under one id: ``begun`` before the cluster is asked, and its
outcome afterwards, so that no change lacks a trace. Where the first line cannot be written the
operation waits, and is refused after ``WatchedCluster.journal_hold_s``. A second line that cannot
be written is delivered later, in order. Reassignments are in the journal by their own commands and
events. A cluster without a bus (a script against a foreign cluster) has no journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, WrongClusterError
from control.model.units import counted
from control.model.watched_cluster import Site, WatchedCluster
from control.operations.bus.events import Event, EventKind
from control.operations.bus.state import OperationState, take_event
from control.operations.bus.topics import Bus
from control.operations.errors import NotJournaledError, PartlyDoneError

VALUES_MAX: Final = 200
"""Values before and after that one line keeps; the rest is counted."""
CLOSE_S: Final = 5.0
UNDELIVERED_MAX: Final = 1_000
"""Lines of at most some kB each."""
_RETRY_S: Final = 0.5
EXECUTOR: Final = "executor"
PART_OF_MOVE: Final = "/"
"""After it stands the number of a line about one reassignment."""
BEGUN: Final = "begun"
DONE: Final = "done"
FAILED: Final = "failed"
PARTLY: Final = "partly done"
"""Some rows were not done; the line's error names them."""
INTERRUPTED: Final = "interrupted"
"""Nobody waited for the answer: it may have been done."""

_OWN_LINE: Final = frozenset({EventKind.YIELDED, EventKind.INTERFERED})

logger = logging.getLogger(__name__)
Values = Mapping[str, str | int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """One line; `operation_id` of a reassignment can be opened and rolled back."""

    at_ms: int
    who: str
    what: str
    reason: str
    outcome: str
    """``begun`` for ever: whoever did it ended before it could say what came of it."""
    operation_id: str
    bootstrap: str = ""
    """Of the cluster that was changed; lines of older releases do not tell."""
    cluster_id: str = ""
    before: Values = field(default_factory=dict)
    after: Values = field(default_factory=dict)
    error: str = ""
    """Why it failed, or what of it was not done."""
    is_foreign: bool = False
    """No known installation has proven that it wrote the line: anybody may have."""

    @property
    def site(self) -> Site:
        """That cluster."""
        return Site(self.bootstrap, self.cluster_id)


class Journal:
    """Writes what is done to one cluster to a bus, and reads what was done to it."""

    def __init__(self, bus: KafkaSettings | str | None, *, of: WatchedCluster, who: str) -> None:
        self._bus = None if bus is None else Bus(bus)
        self._of = of
        self._who = who
        self._hold_s = of.journal_hold_s
        self._has_topics = False
        self._undelivered: deque[Event] = deque(maxlen=UNDELIVERED_MAX)
        self._delivery: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Deliver what is left within ``CLOSE_S``, then close the connections."""
        if self._delivery is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._delivery, CLOSE_S)
            for event in self._undelivered:
                logger.error("the journal lacks the outcome of: %s", event.message)
        if self._bus is not None:
            await self._bus.close()

    @contextlib.asynccontextmanager
    async def entry(
        self,
        what: str,
        *,
        reason: str = "",
        before: Values,
        after: Values,
        outcome: Callable[[], Values] = dict,
        shortfall: Callable[[], str] = str,
    ) -> AsyncIterator[None]:
        """The lines around one change. ``outcome`` answers what came of it, beside ``after``, and
        ``shortfall`` what was not done of it.

        :raises NotJournaledError: the first line could not be written; nothing may be changed.
        """
        if self._bus is None:
            yield
            return
        data = {
            "who": self._who,
            "reason": reason,
            "before": _first(before),
            "after": _first(after),
            **self._of.site._asdict(),
        }
        begun = Event(
            operation_id=f"do-{secrets.token_hex(4)}",
            kind=EventKind.JOURNAL,
            at_ms=_now_ms(),
            message=what,
            data={**data, "outcome": BEGUN},
        )
        await self._write_first(begun)
        try:
            yield
        except asyncio.CancelledError:
            await self._write_outcome(begun, INTERRUPTED, outcome())
            raise
        except Exception as error:
            words = str(error) or type(error).__name__
            how = PARTLY if isinstance(error, PartlyDoneError) else FAILED
            await self._write_outcome(begun, how, outcome(), error=words)
            raise
        lacks = shortfall()
        await self._write_outcome(begun, PARTLY if lacks else DONE, outcome(), error=lacks)

    @property
    def unreadable(self) -> str:
        """Count and places of records that could not be read so far; empty: all could."""
        return "" if self._bus is None else self._bus.unreadable.words

    async def lines(self) -> tuple[JournalLine, ...]:
        """All lines of the cluster, the newest first."""
        if self._bus is None:
            return ()
        events: list[Event] = []
        states: dict[str, OperationState] = {}
        async for event in self._bus.each_event():
            take_event(states, event)
            if event.kind is EventKind.JOURNAL:
                events.append(event)
        lines = [*lines_of_events(events), *chain(*map(lines_of_state, states.values()))]
        lines = [line for line in lines if self._of.owns(line.site)]
        return tuple(sorted(lines, key=lambda line: line.at_ms, reverse=True))

    async def _write_first(self, event: Event) -> None:
        until_s = time.monotonic() + self._hold_s
        while True:
            try:
                # Lines keep their order: outcomes of earlier operations go first.
                await asyncio.wait_for(
                    self._publish_in_order(event), None if math.isinf(until_s) else self._hold_s
                )
                return
            except WrongClusterError:
                raise  # waiting does not bring back the cluster that is meant
            except (KafkaPortError, TimeoutError) as error:
                if time.monotonic() + _RETRY_S >= until_s:
                    raise NotJournaledError(event.message, _why(error), self._hold_s) from error
            await asyncio.sleep(_RETRY_S)

    async def _write_outcome(
        self, begun: Event, outcome: str, found: Values, *, error: str = ""
    ) -> None:
        after = {**begun.data["after"], **found}
        data: dict[str, Any] = {**begun.data, "outcome": outcome, "error": error, "after": after}
        # The first line's time stays: it is when the operation was done.
        self._undelivered.append(replace(begun, data=data))
        if self._delivery is None or self._delivery.done():
            self._delivery = asyncio.create_task(self._deliver())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._delivery), _RETRY_S)

    async def _deliver(self) -> None:
        while self._undelivered:
            try:
                await self._publish_in_order()
            except KafkaPortError as error:
                logger.warning("the journal is written later: %s", error)
                await asyncio.sleep(_RETRY_S)

    async def _publish_in_order(self, last: Event | None = None) -> None:
        assert self._bus is not None
        if not self._has_topics:
            await self._bus.ensure_topics()
            self._has_topics = True
        while self._undelivered:
            event = self._undelivered[0]
            await self._bus.publish_event(event)
            if self._undelivered and self._undelivered[0] is event:
                self._undelivered.popleft()
        if last is not None:
            await self._bus.publish_event(last)


def lines_of_events(events: Iterable[Event]) -> list[JournalLine]:
    """One line for each direct operation, by its newest event, in the order of the first ones. What
    others write takes no proven line's place."""
    newest: dict[str, Event] = {}
    for event in events:
        known = newest.get(event.operation_id, event)
        if known.is_foreign or not event.is_foreign:
            newest[event.operation_id] = event
    return [line_of_event(event) for event in newest.values()]


def line_of_event(event: Event) -> JournalLine:
    """The line of a direct operation. Older releases wrote it once it was done."""
    data = event.data
    return JournalLine(
        at_ms=event.at_ms,
        who=str(data.get("who", "")),
        what=event.message,
        reason=str(data.get("reason", "")),
        outcome=str(data.get("outcome", DONE)),
        operation_id=event.operation_id,
        bootstrap=str(data.get("bootstrap", "")),
        cluster_id=str(data.get("cluster_id", "")),
        before=_values(data.get("before")),
        after=_values(data.get("after")),
        error=str(data.get("error", "")),
        is_foreign=event.is_foreign,
    )


def lines_of_state(state: OperationState) -> list[JournalLine]:
    """The line of a reassignment, and one for each time that it yielded to consumers or another
    tool changed what it had set."""
    told = [moment for moment in state.moments if moment.kind in _OWN_LINE]
    parts = [
        JournalLine(
            at_ms=moment.at_ms,
            who=EXECUTOR,
            what=f"{state.operation_id} {moment.words}",
            reason=state.reason,
            outcome=DONE,
            operation_id=f"{state.operation_id}{PART_OF_MOVE}{number}",
            bootstrap=state.bootstrap,
            cluster_id=state.cluster_id,
            is_foreign=state.is_foreign,
        )
        for number, moment in enumerate(told, 1)
    ]
    return [line_of_state(state), *parts]


def line_of_state(state: OperationState) -> JournalLine:
    """The line of a reassignment, as far as it is."""
    undo = f", rolls {state.rollback_of} back" if state.rollback_of else ""
    outcome = state.phase.value if state.outcome is None else state.outcome.value
    return JournalLine(
        at_ms=state.submitted_ms,
        who=state.who,
        what=f"reassign {counted(state.partitions_count, 'partition')}{undo}",
        reason=state.reason,
        outcome=outcome,
        operation_id=state.operation_id,
        bootstrap=state.bootstrap,
        cluster_id=state.cluster_id,
        is_foreign=state.is_foreign,
    )


def _values(found: object) -> Values:
    return dict(found) if isinstance(found, Mapping) else {}


def _first(values: Values) -> Values:
    shown = dict(list(values.items())[:VALUES_MAX])
    left = len(values) - len(shown)
    return shown | ({"…": f"{left:,} more values"} if left else {})


def _why(error: Exception) -> str:
    return str(error) or "the bus does not answer"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
