"""The report of a finished move: its data, and its files."""

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from control.model.ids import TopicPartition
from control.model.watched_cluster import Site
from control.move.events import EventKind, MoveProgress, Outcome
from control.move.results import Misses
from control.move.state import OperationState, Phase
from control.operations.errors import InvalidInputError
from control.operations.reassignment.preview_history import past_estimates_words
from control.views.move_report.documents import WRITERS, html, markdown, sections_of
from control.views.move_report.group_lag import NOT_KEPT, group_lag, spans_of
from control.views.move_report.reading import read_report
from control.views.move_report.report import WaveTimes, report_of
from spark_metrics.window.aggregates import COMMIT_HISTORY
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import FakeContext, change, command_of

MOVED = TopicPartition("a", 0)
KEPT_MS = 1_000_000
ENDED_MS = KEPT_MS + 60_000
SPANS = spans_of(KEPT_MS, ENDED_MS)
PLAIN = Misses(foreseen=0.0, left=(), is_adaptive=False)


def finished(**changed: Any) -> OperationState:
    """A move of one partition in two waves, the second begun again after a crash."""
    progress = MoveProgress(
        bytes_done=9, bytes_total=9, partitions_done=1, partitions_total=1, wave=2, waves=2
    )
    command = replace(command_of(change("a", size_bytes=9)), who="ann", reason="104 | joined")
    context = FakeContext(command)
    context.told(EventKind.STARTED, progress=progress.document(), expected_s=[10.0, 14.0])
    for kind, wave in (
        (EventKind.WAVE_STARTED, 1),
        (EventKind.WAVE_DONE, 1),
        (EventKind.WAVE_STARTED, 2),
        (EventKind.WAVE_STARTED, 2),
    ):
        context.told(kind, f"wave {wave}", wave=wave)
    context.told(EventKind.YIELDED, "yields to group g", groups=["g"])
    context.told(EventKind.FINISHED, "done: 1 of 1 partition moved", outcome=Outcome.DONE.value)
    return replace(context.state(), **changed)


def history(*points: tuple[str, int, int, int | None]) -> pa.Table:
    """Of topic, partition, time and lag."""
    rows = [
        {
            "topic": topic,
            "partition": number,
            "at_ms": at_ms,
            "lag": lag,
            "time_lag_ms": None if lag is None else lag * 10,
        }
        for topic, number, at_ms, lag in points
    ]
    return pa.Table.from_pylist(rows, schema=COMMIT_HISTORY)


def test_waves_are_told_from_their_first_begin_and_one_that_never_ended_has_no_end() -> None:
    first, second = report_of(finished(), None).waves
    assert (first.number, first.ended_ms is None) == (1, False)
    assert second == WaveTimes(number=2, words="wave 2", began_ms=second.began_ms, ended_ms=None)
    assert first.ended_ms is not None
    assert second.began_ms == first.ended_ms + 1


def test_lag_of_what_moved_stands_beside_what_did_not_and_what_is_not_kept_is_none() -> None:
    points = history(
        ("a", 0, KEPT_MS - 1, 4),
        ("a", 0, KEPT_MS, 10),
        ("a", 0, ENDED_MS, 30),
        ("a", 1, KEPT_MS, 2),
        ("b", 0, ENDED_MS, 4),
        ("b", 0, ENDED_MS + 1, None),
    )
    told = group_lag("g", points, [MOVED], SPANS)
    assert (told.moved.before.mean, told.moved.before.most) == (4.0, 4)
    during = told.moved.during
    assert (during.mean, during.most, during.time_lag_ms) == (20.0, 30, 300)
    assert told.moved.after == NOT_KEPT
    assert (told.stayed.before, told.stayed.during.mean) == (NOT_KEPT, 3.0)
    assert told.stayed.after == NOT_KEPT


def test_what_is_missing_is_told_as_missing_in_every_file() -> None:
    state = finished(progress=None, who="", throttle_asked=None)
    report = read_report(state, None, cluster="c")
    text = markdown(report)
    assert not lacking(text, "Not known", "no store of metrics")
    assert "| Data copied | not told |" in text
    assert json.loads(WRITERS["json"].write(report))["copied_bytes"] is None
    lag = group_lag("g", history(), [MOVED], SPANS)
    shown = sections_of(report_of(state, [lag]))
    (groups,) = [section for section in shown if section.title.startswith("Lag")]
    assert groups.rows[0] == ("g", "moved", "no history", "no history", "no history")


def test_a_report_is_of_a_move_that_has_ended() -> None:
    with pytest.raises(InvalidInputError, match="still runs"):
        read_report(replace(finished(), phase=Phase.RUNNING, outcome=None), None, cluster="c")


def test_words_of_people_stay_words_in_every_file() -> None:
    report = report_of(finished(reason="<b>|*x*"), [])
    assert r"| Reason | \<b>\|\*x\* |" in markdown(report)
    assert "&lt;b&gt;|*x*" in html(report)
    assert "<b>" not in html(report)


def test_estimates_are_compared_with_the_newest_five_that_nobody_held_up() -> None:
    def past(number: int, took_s: float, **changed: Any) -> OperationState:
        ended = {"started_ms": 0, "finished_ms": int(took_s * 1000)}
        known = {"misses": PLAIN, "updated_ms": number, **ended, **changed}
        return finished(operation_id=f"mv-{number}", **known)

    here = Site("c:1")
    assert past_estimates_words([], here) == ""
    assert not lacking(past_estimates_words([past(1, 12.0)], here), "last move", "1.0")
    states = [past(n, took_s) for n, took_s in enumerate((1.0, 10.8, 11.0, 12.0, 13.0, 15.6))]
    held = [past(9, 600.0, misses=None), past(10, 700.0, outcome=Outcome.CANCELLED)]
    words = past_estimates_words([*states, *held], here)
    assert not lacking(words, "last 5 moves", "0.9 to 1.3", "estimate")
    assert past_estimates_words(states, Site("elsewhere:1")) == ""
