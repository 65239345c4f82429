"""The state of an operation: a fold over its events, the same for executor and screens.

phase      entered by
========== =======================================================
SUBMITTED  a command that no executor has answered yet
WAITING    ACCEPTED: in the queue
RUNNING    STARTED, RESUMED
PAUSING    PAUSED while partitions are copied: they arrive, nothing else begins
PAUSED     PAUSED where none is, or PROGRESS: the last of them has arrived
CANCELLING CANCELLING: running partitions go back
FINISHED   FINISHED, REFUSED: `outcome` says how
========== =======================================================
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, repeat
from typing import Any

from control.model.units import counted
from control.model.watched_cluster import Site
from control.move.change_codec import changes_document, pack, unpack
from control.move.commands import ReassignCommand
from control.move.events import Event, EventKind, MoveProgress, Outcome
from control.move.results import Fate, Misses, fate_counts, unpack_fates
from control.move.throttle import Throttle
from control.move.window import words_of
from control.move.yields import NEVER_YIELDS, YieldRules
from planner.proposal import PartitionChange


class Phase(StrEnum):
    """Where an operation stands."""

    SUBMITTED = "submitted"
    WAITING = "waiting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    FINISHED = "finished"


HELD = frozenset({Phase.PAUSING, Phase.PAUSED})
"""An operator has paused it; it may be resumed."""
MOMENTS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One step of an operation, for its report."""

    at_ms: int
    kind: EventKind
    words: str
    wave: int | None = None
    """That begins or ends."""
    rate: int | None = None
    """Bytes per second of the throttle from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationState:
    """One reassignment, running or past; the journal's line with its undo."""

    operation_id: str
    phase: Phase = Phase.SUBMITTED
    outcome: Outcome | None = None
    who: str = ""
    reason: str = ""
    bootstrap: str = ""
    cluster_id: str = ""
    """Empty: of an older release, which told the address alone."""
    is_foreign: bool = False
    """No known installation has proven that it accepted the operation."""
    rollback_of: str | None = None
    submitted_ms: int = 0
    started_ms: int | None = None
    updated_ms: int = 0
    finished_ms: int | None = None
    changes: tuple[PartitionChange, ...] = ()
    told_partitions: int | None = None
    told_bytes: int | None = None
    """How many changes, and how much they copy, where the changes themselves are left out
    (control.move.known_states)."""
    throttle_bytes_per_s: int | None = None
    throttle: Mapping[str, Any] | None = None
    """What was recorded to be removed; null once it is."""
    expected_s: tuple[float, float] | None = None
    """(soonest, latest) seconds as foreseen at the start; null without a throttle."""
    progress: MoveProgress | None = None
    waves_begun: int = 0
    """The last wave of which anything may have been asked of the cluster; 0: none."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Partitions that will not arrive, and why."""
    empties: tuple[int, ...] = ()
    """Brokers that hold nothing any more when it is done, as known at its start."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Of its topics, as known at its start."""
    going_back: tuple[int, ...] = ()
    """Places in ``changes`` of what was moving when it was cancelled."""
    told_fates: tuple[Fate, ...] = ()
    """Of each change at the end; empty: it runs, or an older release told none."""
    misses: Misses | None = None
    """Where the truth lay in what was told; null unless it was done."""
    throttle_asked: Throttle | None = None
    """By the command; null: an older release told none."""
    yields: YieldRules = NEVER_YIELDS
    yields_to: tuple[str, ...] = ()
    """Consumer groups for which it holds back now; empty: it does not."""
    yield_words: str = ""
    """Why it yields now."""
    window: str = ""
    """Hours of the day in which its waves begin, and their time zone; empty: at any time."""
    opens_ms: int | None = None
    """When the window opens that it waits for; null: it does not wait."""
    interfered: frozenset[str] = frozenset()
    """What another tool has changed since the operation was last resumed."""
    stopped_for: str = ""
    """Why it was paused without an operator; empty: it was not."""
    moments: tuple[Moment, ...] = ()
    """What happened when, the newest MOMENTS_MAX."""
    message: str = ""
    """The last line for people."""
    notes: tuple[str, ...] = ()
    refused_acts: tuple[tuple[int, str], ...] = ()
    """What operators asked for and the executor did not do, the newest ACTS_MAX: when each was
    asked for, and why not."""

    @property
    def site(self) -> Site:
        """The cluster that it is about."""
        return Site(self.bootstrap, self.cluster_id)

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.phase is Phase.FINISHED

    @property
    def is_started(self) -> bool:
        """Whether pre-flight was passed."""
        return self.started_ms is not None

    @property
    def is_outside_window(self) -> bool:
        """Whether nothing of it is under way until its window opens."""
        copied = 0 if self.progress is None else self.progress.moving_count
        is_going = self.phase in (Phase.WAITING, Phase.RUNNING)
        return is_going and self.opens_ms is not None and not copied

    @property
    def took_s(self) -> float | None:
        """From start to end; null while it runs."""
        if self.started_ms is None or self.finished_ms is None:
            return None
        return (self.finished_ms - self.started_ms) / 1000

    @property
    def fates(self) -> tuple[Fate, ...]:
        """Result of each change; empty while it runs, or where that is not known."""
        if self.told_fates or self.outcome is None:
            return self.told_fates
        if self.outcome is Outcome.DONE:
            return (Fate.MOVED,) * self.partitions_count
        return () if self.is_started else (Fate.NEVER_BEGAN,) * self.partitions_count

    @property
    def planned_bytes(self) -> int:
        """Data to copy, as known when the operation was planned."""
        if self.changes or self.told_bytes is None:
            return sum(change.moved_bytes for change in self.changes)
        return self.told_bytes

    @property
    def partitions_count(self) -> int:
        """How many partitions it is about."""
        return len(self.changes) or self.told_partitions or 0

    @property
    def may_roll_back(self) -> bool:
        """Whether something was moved that can be moved back: a wave has begun at least."""
        if not self.is_started or self.outcome is Outcome.REFUSED or not self.waves_begun:
            return False
        if self.is_foreign:  # whoever wrote it may have made it up
            return False
        moved = self.progress is None or self.progress.partitions_done > 0
        return moved or self.outcome is not Outcome.CANCELLED

    def may(self, action: str) -> bool:
        """Whether pause, resume, cancel, cancel_after_wave, throttle or rollback makes sense."""
        return {
            "pause": self.phase is Phase.RUNNING,
            "resume": self.phase in HELD or bool(self.yields_to),
            "cancel": not self.is_finished,
            "cancel_after_wave": self._has_waves_left,
            "throttle": self.is_started and not self.is_finished,
            "rollback": self.may_roll_back,
        }[action]

    @property
    def _has_waves_left(self) -> bool:
        is_held = self.phase in HELD
        progress, is_going = self.progress, self.phase is Phase.RUNNING or is_held
        if progress is None:
            return is_going
        may_hold = is_held or progress.spread_s > 0
        return is_going and (progress.wave < progress.waves or may_hold)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Its notes, and why it went on after its last yield: the next wave's words soon replace it
        as its message."""
        if self.yields_to or self.is_finished:
            return self.notes
        yields = [moment.words for moment in self.moments if moment.kind is EventKind.YIELDED]
        return (*self.notes, *yields[-1:])

    def document(self) -> dict[str, Any]:
        """JSON values for `partiscope moves --json`."""
        return {
            "id": self.operation_id,
            "phase": self.phase.value,
            "outcome": None if self.outcome is None else self.outcome.value,
            "who": self.who,
            "is_proven": not self.is_foreign,
            "reason": self.reason,
            "rollback_of": self.rollback_of,
            "submitted_ms": self.submitted_ms,
            "started_ms": self.started_ms,
            "finished_ms": self.finished_ms,
            "throttle_bytes_per_s": self.throttle_bytes_per_s,
            "planned": {
                "bytes": self.planned_bytes,
                "seconds": self.expected_s,
            },
            "real": {
                "bytes": None if self.progress is None else self.progress.bytes_done,
                "seconds": self.took_s,
            },
            "progress": None if self.progress is None else self.progress.document(),
            "message": self.message,
            "yields_to": list(self.yields_to),
            "window": self.window,
            "opens_ms": self.opens_ms,
            "stopped_for": self.stopped_for,
            "notes": list(self.notes),
            "fates": {fate.value: count for fate, count in fate_counts(self.fates).items()},
            "changes": [
                {**change, "fate": fate}
                for change, fate in zip(
                    changes_document(self.changes), chain(self.fates, repeat(None)), strict=False
                )
            ],
        }


_PHASES = {
    EventKind.ACCEPTED: Phase.WAITING,
    EventKind.STARTED: Phase.RUNNING,
    EventKind.RESUMED: Phase.RUNNING,
    EventKind.PAUSED: Phase.PAUSED,
    EventKind.CANCELLING: Phase.CANCELLING,
    EventKind.FINISHED: Phase.FINISHED,
    EventKind.REFUSED: Phase.FINISHED,
}
NOTES_MAX = 50
ACTS_MAX = 10
_STEPS = frozenset(EventKind) - {
    EventKind.ACCEPTED,
    EventKind.PROGRESS,
    EventKind.NOTE,
    EventKind.JOURNAL,
}
"""Events that a report tells one by one."""


def submitted(command: ReassignCommand) -> OperationState:
    """The state before any executor answered."""
    return OperationState(
        operation_id=command.operation_id,
        who=command.who,
        reason=command.reason,
        bootstrap=command.bootstrap,
        cluster_id=command.cluster_id,
        rollback_of=command.rollback_of,
        submitted_ms=command.submitted_ms,
        is_foreign=command.is_foreign,
        updated_ms=command.submitted_ms,
        changes=command.changes,
    )


def accepted_data(command: ReassignCommand) -> dict[str, Any]:
    """Data of the event ACCEPTED, so that events alone tell the whole story."""
    return {
        "who": command.who,
        "reason": command.reason,
        "bootstrap": command.bootstrap,
        "cluster_id": command.cluster_id,
        "rollback_of": command.rollback_of,
        "submitted_ms": command.submitted_ms,
        "throttle": command.throttle,
        "yields": command.yields.document(),
        **({} if command.window is None else {"window": command.window.document()}),
        "partitions": len(command.changes),
        "planned_bytes": sum(change.moved_bytes for change in command.changes),
        "changes": pack(command.changes),
        **({"is_foreign": True} if command.is_foreign else {}),
    }


def apply_event(state: OperationState, event: Event) -> OperationState:
    """The state after one more event. Of a finished operation only the throttle changes, where
    brokers that were down had kept it; a whole new one comes from an executor that slept.

    Of an operation that a known installation has accepted, what others write changes nothing."""
    if not is_heeded(state, event):
        return state
    if event.kind is EventKind.ACCEPTED and not event.is_foreign and state.is_foreign:
        state = OperationState(operation_id=state.operation_id)
    if event.is_foreign:
        state = replace(state, is_foreign=True)
    if state.is_finished:
        return replace(state, **_changed_by(state, event)) if _is_tidying(event) else state
    changed: dict[str, Any] = {"updated_ms": event.at_ms}
    if event.kind in _PHASES:
        changed["phase"] = _PHASES[event.kind]
    if event.message:
        changed["message"] = event.message
    changed["moments"] = _moments(state, event)
    newer = replace(state, **changed, **_changed_by(state, event))
    return _with_cause(_counted(newer)) if newer.phase in HELD else newer


def is_heeded(state: OperationState, event: Event) -> bool:
    """Whether an event may change the operation; what others write of one of ours may not."""
    if not event.is_foreign or state.is_foreign:
        return True
    return state == OperationState(operation_id=state.operation_id)


def _counted(state: OperationState) -> OperationState:
    """A paused operation with the number of partitions that are copied all the same; notes of that
    time stay in ``notes``."""
    progress = state.progress
    copied = 0 if progress is None else progress.moving_count
    if copied:
        is_are = "is" if copied == 1 else "are"
        words = f"{counted(copied, 'partition')} of this wave {is_are} still copied"
        return replace(state, phase=Phase.PAUSING, message=f"pausing: {words}")
    left = 0
    if progress is not None:
        left = progress.partitions_total - progress.partitions_done - len(state.refused)
    if left > 0:
        has_have = "has" if left == 1 else "have"
        words = f"nothing is copied, {counted(left, 'partition')} {has_have} not begun"
        return replace(state, phase=Phase.PAUSED, message=f"paused: {words}")
    words = "paused: nothing is copied" if state.phase is Phase.PAUSING else state.message
    return replace(state, phase=Phase.PAUSED, message=words)


def _with_cause(state: OperationState) -> OperationState:
    """A paused operation that tells why, where no operator asked for it."""
    if not state.stopped_for or state.message.endswith(state.stopped_for):
        return state
    return replace(state, message=f"{state.message}; {state.stopped_for}")


def _moments(state: OperationState, event: Event) -> tuple[Moment, ...]:
    """With one more, where the event is a step and no repetition of the one before it."""
    if event.kind not in _STEPS:
        return state.moments
    rate = event.data["rate"] if event.kind is EventKind.THROTTLE_RECORDED else None
    is_same_rate = state.throttle is not None and rate == state.throttle_bytes_per_s
    if rate is not None and is_same_rate:
        return state.moments
    one = Moment(
        at_ms=event.at_ms,
        kind=event.kind,
        words=event.message,
        wave=event.data.get("wave"),
        rate=rate,
    )
    is_repeated = state.moments[-1:] == (one,)
    return state.moments if is_repeated else (*state.moments, one)[-MOMENTS_MAX:]


def _is_tidying(event: Event) -> bool:
    is_rest = event.kind is EventKind.THROTTLE_RECORDED and not event.data["entries"]
    return is_rest or event.kind is EventKind.THROTTLE_REMOVED


def _changed_by(state: OperationState, event: Event) -> dict[str, Any]:
    data = event.data
    match event.kind:
        case EventKind.ACCEPTED:
            return {
                "who": data["who"],
                "is_foreign": event.is_foreign or data.get("is_foreign", False),
                "reason": data["reason"],
                "bootstrap": data["bootstrap"],
                "cluster_id": str(data.get("cluster_id", "")),
                "rollback_of": data["rollback_of"],
                "submitted_ms": data["submitted_ms"],
                "changes": unpack(data["changes"]),
                "told_partitions": data.get("partitions"),
                "told_bytes": data.get("planned_bytes"),
                "throttle_asked": data.get("throttle"),
                "yields": YieldRules.parse(data.get("yields", {})),
                "window": words_of(data["window"]) if data.get("window") else "",
            }
        case EventKind.STARTED:
            return {**_started_by(event), **_ordered(state, event)}
        case EventKind.THROTTLE_RECORDED | EventKind.THROTTLE_REMOVED:
            is_set = event.kind is EventKind.THROTTLE_RECORDED
            rate = {"throttle_bytes_per_s": data["rate"]} if is_set else {}
            return {"throttle": data if is_set else None, **rate}
        case EventKind.WAVE_STARTED:
            begun = max(state.waves_begun, data.get("wave", 0))
            return {"waves_begun": begun, **_ordered(state, event)}
        case EventKind.PROGRESS:
            return {"progress": MoveProgress.parse(data)}
        case EventKind.NOTE:
            return _noted(state, event)
        case EventKind.REFUSED | EventKind.FINISHED:
            return _ended_by(state, event)
        case _:
            return _held_by(state, event)


def _held_by(state: OperationState, event: Event) -> dict[str, Any]:
    """Fields about what holds it back."""
    data = event.data
    match event.kind:
        case EventKind.YIELDED:
            groups = tuple(data.get("groups", ()))
            return {"yields_to": groups, "yield_words": event.message if groups else ""}
        case EventKind.WINDOW:
            return {"opens_ms": data["opens_ms"]}
        case EventKind.INTERFERED:
            return {
                **_noted(state, event),
                "interfered": state.interfered.union(data.get("changed", ())),
                "stopped_for": data.get("stops", state.stopped_for),
            }
        case EventKind.RESUMED:
            return {"interfered": frozenset(), "stopped_for": ""}
        case EventKind.CANCELLING:
            told = (place for place in data.get("going_back", ()) if place < len(state.changes))
            going_back = {*state.going_back, *told}
            return {"going_back": tuple(sorted(going_back))}
        case _:
            return {}


def _ordered(state: OperationState, event: Event) -> dict[str, Any]:
    """Its changes, with replicas of before in the order in which they were found."""
    found = {int(place): tuple(order) for place, order in event.data.get("before", {}).items()}
    if not found or not state.changes:
        return {}
    changes = enumerate(state.changes)
    return {"changes": tuple(replace(c, before=found.get(n, c.before)) for n, c in changes)}


def _noted(state: OperationState, event: Event) -> dict[str, Any]:
    notes, acts = state.notes, state.refused_acts
    if (asked_ms := event.data.get("refused_act_ms")) is not None:
        acts = (*acts, (asked_ms, event.message))[-ACTS_MAX:]
        notes = tuple(note for note in notes if note != event.message)
    if not event.data.get("is_passing"):  # else it is the message until another one comes
        notes = (*notes, event.message)[-NOTES_MAX:]
    return {
        "notes": notes,
        "refused": {**state.refused, **event.data.get("refused", {})},
        "refused_acts": acts,
    }


def _started_by(event: Event) -> dict[str, Any]:
    data = event.data
    expected = data.get("expected_s")
    return {
        "started_ms": event.at_ms,
        "progress": MoveProgress.parse(data["progress"]),
        "expected_s": None if expected is None else (expected[0], expected[1]),
        "empties": tuple(data.get("empties", ())),
        "topic_ids": data.get("topic_ids", {}),
        "opens_ms": None,
    }


def _ended_by(state: OperationState, event: Event) -> dict[str, Any]:
    if event.kind is EventKind.REFUSED:
        return {"outcome": Outcome.REFUSED, "finished_ms": event.at_ms, "opens_ms": None}
    data = event.data
    misses, progress = data.get("misses"), data.get("progress")
    return {
        "outcome": Outcome(data["outcome"]),
        "finished_ms": event.at_ms,
        "yields_to": (),
        "yield_words": "",
        "opens_ms": None,
        "stopped_for": "",
        "misses": None if misses is None else Misses.parse(misses),
        "told_fates": _fates(data.get("fates", ""), state.partitions_count),
        "progress": MoveProgress.parse(progress) if progress else state.progress,
    }


def _fates(letters: str, count: int) -> tuple[Fate, ...]:
    """None of a newer release, which knows others."""
    try:
        fates = unpack_fates(letters)
    except ValueError:
        return ()
    return fates if len(fates) == count else ()


def misses_of(states: Iterable[OperationState], site: Site) -> list[Misses]:
    """Misses of all operations that ended on a cluster, the oldest first."""
    ended = [state for state in states if state.misses is not None]
    done = [state for state in ended if state.site.is_same(site)]
    done.sort(key=lambda state: state.finished_ms or 0)
    return [state.misses for state in done if state.misses is not None]


def take_event(states: dict[str, OperationState], event: Event) -> None:
    """Fold one more event into the states by operation id; journal lines are no operations. A
    repeated event changes nothing but times and notes."""
    if event.kind is not EventKind.JOURNAL:
        state = states.get(event.operation_id)
        state = state or OperationState(operation_id=event.operation_id)
        states[event.operation_id] = apply_event(state, event)
