"""Plain tables: what narrow columns may break, and what of a cell opens."""

from dataclasses import replace
from typing import Any

from control.move.journal_lines import JournalLine
from control.views.tables.journal import JOURNAL
from dashboard.components.markup import MARKUP
from dashboard.components.tables import rows_table

LINE = JournalLine(
    at_ms=1,
    who="ada@host",
    what="configure orders",
    reason="",
    outcome="done",
    operation_id="mv-3f9a21c4",
)


def drawn(line: JournalLine) -> str:
    table: Any = rows_table([JOURNAL.row(line)], JOURNAL.columns)
    return str(getattr(table, MARKUP))


def test_a_state_and_an_id_stay_on_one_line_and_a_sentence_may_wrap() -> None:
    found = drawn(replace(LINE, error=""))
    assert 'word">mv-3f9a21c4</td>' in found
    assert 'tone-fine word">✔ done</td>' in found
    failed = drawn(replace(LINE, outcome="failed", error="no such config"))
    assert 'rank-1 tone-critical">✖ failed: no such config</td>' in failed


def test_changes_that_a_row_leaves_out_open_in_it() -> None:
    values = {name: f"<{name}>" for name in "abcde"}
    found = drawn(replace(LINE, after=values))
    assert "<summary>a: &lt;a&gt;; b: &lt;b&gt;; c: &lt;c&gt;; … 2 more</summary>" in found
    assert "<li>e: &lt;e&gt;</li>" in found
    assert 'data-key="mv-3f9a21c4 change"' in found
    assert "<details" not in drawn(LINE)
