"""Lines of the journal as rows and as marks on charts."""

import json
import re
from dataclasses import replace

from control.model.moments import iso_text
from control.move.journal_lines import JournalLine
from control.views.series import Span
from control.views.tables.export import document
from control.views.tables.journal import JOURNAL, MARKS_MAX, exported, marks, matching
from tests.support.phrases import lacking


def line(at_ms: int, operation_id: str = "mv-1", outcome: str = "done") -> JournalLine:
    return JournalLine(
        at_ms=at_ms,
        who="ada@host",
        what="reassign 3 partitions",
        reason="",
        outcome=outcome,
        operation_id=operation_id,
    )


def test_a_move_opens_and_what_needed_no_executor_does_not() -> None:
    assert JOURNAL.row(line(1)).path == "moves/mv-1/report"
    assert JOURNAL.row(replace(line(1), outcome="running")).path == "moves/mv-1"
    assert JOURNAL.row(line(1, "mv-1/2")).path == "moves/mv-1"
    assert JOURNAL.row(line(1, "do-1")).path == ""
    assert JOURNAL.row(line(1)).reason.text == "–"


def test_a_line_tells_the_day_the_second_the_cluster_and_what_became_of_what() -> None:
    told = replace(
        line(1_795_766_671_000, "do-1", "failed"),
        error="no such config",
        cluster_id="c1",
        before={"a": 1, "b": None, "c": "x", "d": 4},
        after={"a": 2, "b": "on", "c": None, "d": 5},
    )
    row = JOURNAL.row(told)
    assert re.fullmatch(r"2026-11-2\d \d\d:\d\d:31", row.at.text)
    assert row.change.text == "a: 1 → 2; b: none → on; c: x → none; … 1 more"
    assert "d: 4 → 5" in str(row.change.value)
    assert row.change.lines == ("a: 1 → 2", "b: none → on", "c: x → none", "d: 4 → 5")
    assert row.outcome.text == "failed: no such config"
    assert row.cluster.text == "c1"


def test_what_was_only_counted_has_no_value_before() -> None:
    told = replace(
        line(1, "do-1"), before={"records": None}, after={"acknowledged": 7, "records": 9}
    )
    assert JOURNAL.row(told).change.text == "acknowledged: 7; records: none → 9"


def test_marks_are_those_of_the_span_oldest_first() -> None:
    found = marks([line(30), line(10), line(99)], Span(since_ms=10, until_ms=50))

    assert [mark.at_ms for mark in found] == [10, 30]
    assert found[0].words == "reassign 3 partitions (done)"


def test_too_many_marks_keep_the_newest() -> None:
    found = marks([line(at) for at in range(MARKS_MAX + 5)], Span(since_ms=0, until_ms=100))

    assert [mark.at_ms for mark in found] == list(range(5, MARKS_MAX + 5))


def test_words_filter_lines_in_any_cell_and_a_file_has_every_value() -> None:
    after = {"a": 2, "b": 3, "c": 4, "d": 5}
    lines = [
        replace(line(1, "do-1", "failed"), error="no such config", after=after),
        replace(line(2, "do-2"), what="create topic =1+1"),
    ]
    assert [it.operation_id for it in matching(lines, "ADA d: config")] == ["do-1"]
    assert matching(lines, "ada billing") == []
    rows = json.loads("".join(document(exported(lines), "json")))
    assert not lacking(rows[0]["change"], "a: 2", "d: 5")
    assert rows[0]["at"] == iso_text(lines[0].at_ms)
    assert rows[0]["outcome"] == "failed: no such config"
