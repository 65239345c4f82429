"""Commands and events as JSON, and the fold of events into states."""

from dataclasses import replace
from typing import Any

import pytest

from control.move.commands import ControlAction, ControlCommand, ReassignCommand, encode_command
from control.move.decoding import RecordError, decode_command, decode_event
from control.move.events import Event, EventKind, MoveProgress, Outcome, StalledMove, encode_event
from control.move.results import Misses
from control.move.state import (
    OperationState,
    Phase,
    accepted_data,
    misses_of,
    submitted,
)
from planner.proposal import PartitionChange
from planner.waves import LeaderTurn, SizeOrder, WaveRules
from tests.unit.control.operations.folded import fold

COMMAND = ReassignCommand(
    operation_id="mv-1",
    bootstrap="127.0.0.1:9092",
    changes=(PartitionChange(topic="t", partition=3, before=(1, 2), after=(2, 3), size_bytes=77),),
    throttle=12345,
    waves=WaveRules(
        partitions=4, per_broker=2, order=SizeOrder.LARGE, leaders=LeaderTurn.LAST, spread_s=60.0
    ),
    is_strict=False,
    rollback_of="mv-0",
    who="me@here",
    reason="why not",
    submitted_ms=1000,
)
PROGRESS = MoveProgress(
    bytes_done=5,
    bytes_total=77,
    partitions_done=0,
    partitions_total=1,
    wave=1,
    waves=2,
    rate_bytes_per_s=1.5,
    eta_s_low=1.0,
    eta_s_high=2.0,
    in_flight=("t-3",),
    in_flight_more=450,
    stalled=(StalledMove(topic="t", partition=3, reason="broker 3 is down"),),
    stalled_more=480,
)


def event(kind: EventKind, at_ms: int, message: str = "", **data: object) -> Event:
    return Event(operation_id="mv-1", kind=kind, at_ms=at_ms, message=message, data=data)


def test_commands_round_trip() -> None:
    assert decode_command(encode_command(COMMAND)) == COMMAND
    control = ControlCommand(operation_id="mv-1", action=ControlAction.CANCEL, who="x")
    assert decode_command(encode_command(control)) == control


@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"[]", b'{"kind":"reassign"}', b'{"operation_id":"a","kind":"?"}']
)
def test_what_is_no_command_is_refused(value: bytes | None) -> None:
    with pytest.raises(RecordError):
        decode_command(value)


def test_a_plan_of_a_large_cluster_fits_into_one_record() -> None:
    changes = tuple(
        replace(COMMAND.changes[0], partition=number, size_bytes=1000 * number**2)
        for number in range(20_000)
    )
    large = replace(COMMAND, changes=changes)
    assert len(encode_command(large)) < 1_000_000
    assert decode_command(encode_command(large)) == large
    accepted = decode_event(encode_event(event(EventKind.ACCEPTED, 1, **accepted_data(large))))
    assert fold([accepted])["mv-1"].changes == changes
    with pytest.raises(RecordError):
        decode_command(encode_command(large).replace(b'"changes":"', b'"changes":"AAAA'))


def test_stages_of_changes_round_trip() -> None:
    for number in 2, 2_000:
        changes = tuple(
            replace(COMMAND.changes[0], partition=each, stage=each % 2) for each in range(number)
        )
        staged = replace(COMMAND, changes=changes)
        assert decode_command(encode_command(staged)) == staged


def test_events_round_trip_and_carry_progress() -> None:
    one = event(EventKind.PROGRESS, 5, "half", **PROGRESS.document())
    decoded = decode_event(encode_event(one))
    assert MoveProgress.parse(decoded.data) == PROGRESS
    newer = {**decoded.data, "of a newer release": 1}
    assert MoveProgress.parse(newer) == PROGRESS
    with pytest.raises(RecordError):
        decode_event(b'{"kind":"nonsense"}')


def test_a_whole_life_folds_into_a_state() -> None:
    record: dict[str, Any] = {"rate": 12345, "brokers": [1, 2, 3], "entries": {}}
    events = [
        event(EventKind.ACCEPTED, 1001, **accepted_data(COMMAND)),
        event(EventKind.STARTED, 1002, progress=PROGRESS.document()),
        event(EventKind.THROTTLE_RECORDED, 1003, **record),
        event(EventKind.PAUSED, 1004),
    ]
    (state,) = fold(events).values()
    assert (state.phase, state.changes, state.who) == (Phase.PAUSING, COMMAND.changes, "me@here")
    assert state.throttle == record
    assert (state.is_started, state.rollback_of, state.progress) == (True, "mv-0", PROGRESS)
    events += [
        event(EventKind.CANCELLING, 1005),
        event(EventKind.NOTE, 1006, "odd"),
        event(EventKind.FINISHED, 1007, "cancelled", outcome="cancelled"),
        event(EventKind.THROTTLE_RECORDED, 1008, "still on 3, which is down", **record),
    ]
    (state,) = fold(events).values()
    assert (state.throttle, state.message) == (record, "cancelled")
    whole = {**record, "entries": {"t": {}}}
    events += [
        event(EventKind.THROTTLE_RECORDED, 1008, "of an executor that slept", **whole),
    ]
    (state,) = fold(events).values()
    assert state.throttle == record
    events += [
        event(EventKind.THROTTLE_REMOVED, 1009, "throttle removed"),
        event(EventKind.STARTED, 1010, progress=PROGRESS.document()),
    ]
    (state,) = fold(events).values()
    assert (state.phase, state.outcome) == (Phase.FINISHED, Outcome.CANCELLED)
    assert (state.finished_ms, state.throttle, state.notes) == (1007, None, ("odd",))
    assert state.document()["outcome"] == "cancelled"


def test_what_is_learned_is_of_what_was_done_on_that_cluster_the_oldest_first() -> None:
    def done(at_ms: int, miss: float, **changed: Any) -> OperationState:
        misses = Misses(foreseen=miss, left=(miss,), is_adaptive=False).document()
        told = [
            event(EventKind.ACCEPTED, 1, **accepted_data(replace(COMMAND, **changed))),
            event(EventKind.FINISHED, at_ms, "done", outcome="done", misses=misses),
        ]
        return fold(told)["mv-1"]

    cancelled = fold([event(EventKind.FINISHED, 4, "cancelled", outcome="cancelled")])["mv-1"]
    states = [done(3, 0.3), cancelled, done(2, 0.2), done(1, 0.1, bootstrap="other:9092")]
    assert [m.foreseen for m in misses_of(states, COMMAND.site)] == [0.2, 0.3]


def test_refused_and_unanswered_operations() -> None:
    assert submitted(COMMAND).phase is Phase.SUBMITTED
    refused = [
        event(EventKind.ACCEPTED, 1, **accepted_data(COMMAND)),
        event(EventKind.REFUSED, 2, "stale"),
    ]
    (state,) = fold(refused).values()
    assert (state.outcome, state.may_roll_back, state.message) == (Outcome.REFUSED, False, "stale")


def test_what_may_be_asked_of_a_move_goes_by_how_far_it_is() -> None:
    asked = ("pause", "resume", "cancel", "throttle", "rollback")

    def may(phase: Phase, outcome: Outcome | None = None, done: int = 0, waves: int = 1) -> str:
        state = OperationState(
            operation_id="m",
            phase=phase,
            started_ms=1,
            waves_begun=waves,
            outcome=outcome,
            progress=replace(PROGRESS, partitions_done=done),
        )
        return " ".join(action for action in asked if state.may(action))

    assert may(Phase.RUNNING) == "pause cancel throttle rollback"
    assert may(Phase.PAUSED) == "resume cancel throttle rollback"
    assert may(Phase.FINISHED, Outcome.DONE, done=1) == "rollback"
    assert may(Phase.FINISHED, Outcome.CANCELLED, done=1) == "rollback"
    assert may(Phase.FINISHED, Outcome.CANCELLED) == "", "nothing is to be taken back"
    assert may(Phase.FINISHED, Outcome.FAILED) == "rollback", "it may go on without us"
    assert may(Phase.FINISHED, Outcome.FAILED, waves=0) == "", "nothing was asked of the cluster"
