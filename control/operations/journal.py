"""The journal: every change that a screen or script made, with who, when and why.

Reassignments are in it by their own events; what needs no executor is written here as one line.
A cluster without a bus (a script against a foreign cluster) has no journal: lines are dropped.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

from control.kafka.errors import KafkaPortError
from control.kafka.settings import KafkaSettings
from control.model.fleet import Site, WatchedCluster
from control.operations.bus import Bus
from control.operations.events import Event, EventKind
from control.operations.state import OperationState, take_event


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """One line; `operation_id` of a reassignment can be opened and undone."""

    at_ms: int
    who: str
    what: str
    reason: str
    outcome: str
    operation_id: str
    bootstrap: str = ""
    """Of the cluster that was changed; lines of older releases do not tell."""
    cluster_id: str = ""

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
        self._has_topics = False

    async def close(self) -> None:
        """Close the connections."""
        if self._bus is not None:
            await self._bus.close()

    async def write(self, what: str, *, reason: str = "", **details: Any) -> bool:
        """One line for a direct operation; False when there is no bus to keep it."""
        if self._bus is None:
            return False
        event = Event(
            operation_id=f"do-{secrets.token_hex(4)}",
            kind=EventKind.JOURNAL,
            at_ms=int(time.time() * 1000),
            message=what,
            data={**details, "who": self._who, "reason": reason, **self._of.site._asdict()},
        )
        try:
            if not self._has_topics:
                await self._bus.ensure_topics()
                self._has_topics = True
            await self._bus.publish_event(event)
        except KafkaPortError:
            return False
        return True

    async def lines(self) -> tuple[JournalLine, ...]:
        """All lines of the cluster, the newest first."""
        if self._bus is None:
            return ()
        lines: list[JournalLine] = []
        states: dict[str, OperationState] = {}
        async for event in self._bus.each_event():
            take_event(states, event)
            if event.kind is EventKind.JOURNAL:
                lines.append(line_of_event(event))
        lines += map(line_of_state, states.values())
        lines = [line for line in lines if self._of.owns(line.site)]
        return tuple(sorted(lines, key=lambda line: line.at_ms, reverse=True))


def line_of_event(event: Event) -> JournalLine:
    """The line of a direct operation."""
    return JournalLine(
        at_ms=event.at_ms,
        who=str(event.data.get("who", "")),
        what=event.message,
        reason=str(event.data.get("reason", "")),
        outcome="done",
        operation_id=event.operation_id,
        bootstrap=str(event.data.get("bootstrap", "")),
        cluster_id=str(event.data.get("cluster_id", "")),
    )


def line_of_state(state: OperationState) -> JournalLine:
    """The line of a reassignment, as far as it is."""
    undo = f", undoes {state.rollback_of}" if state.rollback_of else ""
    outcome = state.phase.value if state.outcome is None else state.outcome.value
    return JournalLine(
        at_ms=state.submitted_ms,
        who=state.who,
        what=f"reassign {state.partitions_count:,} partitions{undo}",
        reason=state.reason,
        outcome=outcome,
        operation_id=state.operation_id,
        bootstrap=state.bootstrap,
        cluster_id=state.cluster_id,
    )
