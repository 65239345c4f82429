"""What became of each partition of an operation that has ended."""

import json
from typing import Any

from control.move.commands import ReassignCommand
from control.move.decoding import decode_event
from control.move.events import Event, EventKind, Outcome, encode_event
from control.move.results import Fate
from control.move.state import OperationState, apply_event
from control.operations.executor.cancellation import give_up
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    begun,
    change,
    command_of,
    idle,
    run,
)

MOVES = tuple(change(name) for name in "abcde")
TWO = WaveRules(partitions=2)


def cluster() -> FakeCluster:
    return FakeCluster({it.key: FROM for it in MOVES})


def fates(state: OperationState) -> dict[str, Fate]:
    assert len(state.fates) == len(state.changes)
    return {it.topic: fate for it, fate in zip(state.changes, state.fates, strict=True)}


async def test_after_a_cancel_it_says_which_moved_went_back_and_never_began() -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=TWO))

    def arrive_one_and_cancel() -> None:
        there.arrive(MOVES[2].key)
        context.script.is_cancelled = True

    ended = await run(there, context, idle, there.arrive, idle, arrive_one_and_cancel)
    assert fates(ended) == {
        "a": Fate.MOVED,
        "b": Fate.MOVED,
        "c": Fate.MOVED,
        "d": Fate.WENT_BACK,
        "e": Fate.NEVER_BEGAN,
    }
    assert not lacking(
        ended.message, "cancelled", "3 of 5 partitions moved", "1 went back", "1 never began"
    )
    document = json.loads(json.dumps(ended.document()))
    assert document["fates"] == {"moved": 3, "went back": 1, "never began": 1}
    assert [it["fate"] for it in document["changes"]][3:] == ["went back", "never began"]


async def test_what_went_back_before_a_crash_is_known_after_it() -> None:
    there, context = cluster(), begun(command_of(*MOVES, waves=TWO), wave=1)
    context.told(EventKind.CANCELLING, "cancelling", going_back=[1])
    context.script.is_cancelled = True
    ended = await run(there, context)
    assert fates(ended)["b"] is Fate.WENT_BACK
    assert fates(ended)["a"] is Fate.NEVER_BEGAN


async def test_what_was_done_moved_all_and_what_runs_has_no_fate_yet() -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES))
    assert context.state().fates == ()
    assert {it["fate"] for it in context.state().document()["changes"]} == {None}
    ended = await run(there, context, *[there.arrive] * 5)
    assert set(ended.fates) == {Fate.MOVED}


async def test_what_is_given_up_midway_tells_its_fates_too() -> None:
    there, context = cluster(), begun(command_of(*MOVES, waves=TWO), wave=1)
    there.begin(MOVES[0].key, MOVES[0].after)
    there.arrive()
    there.begin(MOVES[1].key, MOVES[1].after)
    admin: Any = there
    given_up = await give_up(admin, context.command, context)
    assert given_up.words == "1 partition in flight went back"
    assert given_up.fates[:3] == (Fate.MOVED, Fate.WENT_BACK, Fate.NEVER_BEGAN)


def test_fates_of_a_newer_release_and_of_an_older_one_are_not_known() -> None:
    command: ReassignCommand = command_of(*MOVES)
    state = FakeContext(command).told(
        EventKind.STARTED, progress={"bytes_done": 0, "bytes_total": 0, "partitions_done": 0,
                                     "partitions_total": 5, "wave": 0, "waves": 1}
    ).state()  # fmt: skip
    for data in ({}, {"fates": "mm?nn"}, {"fates": "mm"}):
        event = Event(
            operation_id="mv-1", kind=EventKind.FINISHED, at_ms=9,
            data={"outcome": Outcome.CANCELLED.value, **data},
        )  # fmt: skip
        assert apply_event(state, decode_event(encode_event(event))).fates == ()
