"""Rows of moves."""

from dataclasses import replace

from control.move.events import EventKind, MoveProgress, Outcome
from control.move.state import Moment, OperationState, Phase
from control.views.tables.moves import (
    change_row,
    done_percent,
    earlier_notes,
    eta_cell,
    move_row,
    spread_words,
)
from control.views.tables.rows import Tone
from planner.proposal import PartitionChange
from tests.support.phrases import lacking
from tests.unit.control.clusters import NOW_MS

CHANGE = PartitionChange(
    topic="orders", partition=7, before=(101, 102), after=(103, 101), size_bytes=2048
)


def progress(**known: float | None) -> MoveProgress:
    figures = {
        "bytes_done": 50, "bytes_total": 200, "partitions_done": 1, "partitions_total": 2,
        "wave": 1, "waves": 1, **known,
    }  # fmt: skip
    return MoveProgress(**figures)  # type: ignore[arg-type]


def test_a_running_move() -> None:
    row = move_row(
        OperationState(
            operation_id="mv-1",
            phase=Phase.RUNNING,
            changes=(CHANGE,),
            progress=progress(rate_bytes_per_s=1024.0),
            submitted_ms=NOW_MS,
        ),
        now_ms=NOW_MS,
    )

    assert (row.status.text, row.status.tone) == ("running", Tone.NOTICE)
    assert (row.done.text, row.rate.text, row.size_bytes.text) == ("25 %", "1.0 KiB/s", "2.0 KiB")
    assert row.eta.text == "n/a"
    assert row.path == "moves/mv-1"


def test_a_finished_move_has_no_rate_any_more() -> None:
    row = move_row(
        OperationState(
            operation_id="mv-1",
            phase=Phase.FINISHED,
            outcome=Outcome.DONE,
            progress=progress(bytes_done=200, rate_bytes_per_s=1024.0),
            expected_s=(8.0, 12.0),
            started_ms=NOW_MS - 9_000,
            finished_ms=NOW_MS,
        ),
        now_ms=NOW_MS,
    )

    assert (row.status.text, row.done.text, row.rate.text, row.eta.text) == (
        "done", "100 %", "–", "–"
    )  # fmt: skip
    assert (row.copied.text, row.estimated.text, row.took.text) == (
        "200 B",
        "≈ 8.0 s – 12 s",
        "9.0 s",
    )
    assert (row.estimated.value, row.took.value) == (12_000.0, 9_000.0)


def test_the_end_is_an_interval() -> None:
    ends = eta_cell(progress(eta_s_low=600.0, eta_s_high=1260.0), told_ms=NOW_MS, now_ms=NOW_MS)
    assert ends.value == NOW_MS + 1_260_000

    first, last = ends.text.removeprefix("≈ ").split("–")
    assert first < last


def test_a_move_without_bytes_is_counted_in_partitions() -> None:
    assert done_percent(progress(bytes_done=0, bytes_total=0)) == 50.0
    assert done_percent(progress(bytes_total=0, partitions_total=0)) == 100.0
    assert done_percent(None) is None


def test_a_change_shows_who_leads_and_what_travels() -> None:
    row = change_row(CHANGE)

    assert (row.name.text, row.before.text, row.after.text) == (
        "orders-7", "101, 102", "103, 101"
    )  # fmt: skip
    assert (row.new_leader.text, row.moved.text) == ("yes, 103", "2.0 KiB")
    same = PartitionChange(topic="t", partition=0, before=(1, 2), after=(2, 1), size_bytes=9)
    assert change_row(same).moved.text == "no data"


def test_what_is_waited_for_is_said_while_it_is() -> None:
    words = spread_words(progress(spread_s=112.0))
    assert not lacking(words, "last partition", "in 1 m 52 s", "spare producers")
    assert spread_words(progress()) == ""


def test_what_a_move_says_now_is_not_told_again_among_its_notes() -> None:
    notes = ("broker 103 is down", "4 leaders elected one after the other")
    state = OperationState(
        operation_id="mv-1", phase=Phase.RUNNING, changes=(CHANGE,), notes=notes, message=notes[1]
    )

    assert earlier_notes(state) == ["broker 103 is down"]


def test_that_a_move_went_on_is_told_until_it_yields_again() -> None:
    words = "goes on: group g has caught up"
    told = [(EventKind.YIELDED, "yields to group g"), (EventKind.YIELDED, words)]
    moments = tuple(Moment(at_ms=at, kind=kind, words=it) for at, (kind, it) in enumerate(told))
    state = OperationState(
        operation_id="mv-1", phase=Phase.RUNNING, changes=(CHANGE,), moments=moments, message=words
    )

    assert earlier_notes(state) == []
    assert earlier_notes(replace(state, message="wave 2 of 3")) == [words]
    assert earlier_notes(replace(state, message="wave 2 of 3", yields_to=("g",))) == []
