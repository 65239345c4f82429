"""A finished move as data. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from control.move.events import EventKind
from control.move.state import Moment, OperationState
from control.operations.reassignment.preview_history import estimate_share
from control.views.move_report.group_lag import GroupLag


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveTimes:
    """One wave; ended_ms is null where it was cancelled."""

    number: int
    words: str
    began_ms: int
    ended_ms: int | None

    @property
    def took_ms(self) -> int | None:
        """Null where it did not end."""
        return None if self.ended_ms is None else self.ended_ms - self.began_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult:
    """One partition, and what became of it."""

    partition: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    planned_bytes: int
    fate: str
    """Empty: not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """A move from its plan to its end. Null is not known; times are ms since the epoch."""

    operation_id: str
    cluster: str
    who: str
    reason: str
    rollback_of: str | None
    outcome: str
    message: str
    submitted_ms: int
    started_ms: int | None
    finished_ms: int | None
    partitions: int
    partitions_done: int | None
    planned_bytes: int
    copied_bytes: int | None
    estimated_s: tuple[float, float] | None
    took_s: float | None
    took_of_estimate: float | None
    """1.0: it took the middle of its estimate."""
    throttle_asked: int | str | None
    throttles: tuple[Moment, ...]
    waves: tuple[WaveTimes, ...]
    yields: tuple[Moment, ...]
    pauses: tuple[Moment, ...]
    notes: tuple[str, ...]
    changes: tuple[ChangeResult, ...]
    """Empty: the plan is not kept."""
    groups: tuple[GroupLag, ...] | None
    """Null: no history tells which groups read what moved."""
    groups_missing: str
    """Why that is so."""

    def document(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def report_of(
    state: OperationState, groups: Sequence[GroupLag] | None, *, groups_missing: str = ""
) -> MoveReport:
    """The report of an operation that has ended."""
    progress = state.progress
    return MoveReport(
        operation_id=state.operation_id,
        cluster=state.cluster_id or state.bootstrap,
        who=state.who,
        reason=state.reason,
        rollback_of=state.rollback_of,
        outcome=str(state.outcome or state.phase),
        message=state.message,
        submitted_ms=state.submitted_ms,
        started_ms=state.started_ms,
        finished_ms=state.finished_ms,
        partitions=state.partitions_count,
        partitions_done=None if progress is None else progress.partitions_done,
        planned_bytes=state.planned_bytes,
        copied_bytes=None if progress is None else progress.bytes_done,
        estimated_s=state.expected_s,
        took_s=state.took_s,
        took_of_estimate=estimate_share(state),
        throttle_asked=state.throttle_asked,
        throttles=_of_kinds(state, EventKind.THROTTLE_RECORDED, EventKind.THROTTLE_REMOVED),
        waves=_waves(state.moments),
        yields=_of_kinds(state, EventKind.YIELDED),
        pauses=_of_kinds(state, EventKind.PAUSED, EventKind.RESUMED, EventKind.WINDOW),
        notes=state.notes,
        changes=tuple(
            ChangeResult(
                partition=str(change.key),
                before=tuple(change.before),
                after=tuple(change.after),
                planned_bytes=change.moved_bytes,
                fate=str(fate or ""),
            )
            for change, fate in zip_longest(state.changes, state.fates[: len(state.changes)])
        ),
        groups=None if groups is None else tuple(groups),
        groups_missing=groups_missing if groups is None else "",
    )


def _of_kinds(state: OperationState, *kinds: EventKind) -> tuple[Moment, ...]:
    return tuple(moment for moment in state.moments if moment.kind in kinds)


def _waves(moments: Sequence[Moment]) -> tuple[WaveTimes, ...]:
    """One that was begun again after a crash began when it first did."""
    began: dict[int, Moment] = {}
    ended: dict[int, int] = {}
    for moment in moments:
        if moment.wave is not None and moment.kind is EventKind.WAVE_STARTED:
            began.setdefault(moment.wave, moment)
        elif moment.wave is not None and moment.kind is EventKind.WAVE_DONE:
            ended[moment.wave] = moment.at_ms
    return tuple(
        WaveTimes(number=n, words=it.words, began_ms=it.at_ms, ended_ms=ended.get(n))
        for n, it in sorted(began.items())
    )
