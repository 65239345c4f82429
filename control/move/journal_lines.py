"""Lines of the journal: one for each direct operation, and those of a reassignment. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from control.model.units import counted
from control.model.watched_cluster import Site
from control.move.events import Event, EventKind
from control.move.state import OperationState

EXECUTOR: Final = "executor"
PART_OF_MOVE: Final = "/"
"""After it stands the number of a line about one reassignment."""
BEGUN: Final = "begun"
ASKED: Final = "asked for"
"""A reassignment of which no record is left, or none has come yet."""
DONE: Final = "done"
FAILED: Final = "failed"
PARTLY: Final = "partly done"
"""Some rows were not done; the line's error names them."""
INTERRUPTED: Final = "interrupted"
"""Nobody waited for the answer: it may have been done."""

_OWN_LINE: Final = frozenset({EventKind.YIELDED, EventKind.INTERFERED})

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
    move: str = ""
    """The reassignment that was asked for, whose own line is shown where its records are there."""
    is_foreign: bool = False
    """No known installation has proven that it wrote the line: anybody may have."""

    def is_of(self, name: str) -> bool:
        """Whether somebody of this name did it: ``alice`` of ``alice (page, 10.0.0.5)`` and of
        ``alice@host``; an empty name is anybody's."""
        login = self.who.partition(" (")[0]
        return name in ("", self.who, login, login.partition("@")[0])

    @property
    def site(self) -> Site:
        """That cluster."""
        return Site(self.bootstrap, self.cluster_id)


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
        move=str(data.get("move", "")),
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
