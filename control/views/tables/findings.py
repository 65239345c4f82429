"""The table of findings: a row per finding, in words."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from control.model.command_line import typed
from control.model.finding import Finding
from control.views import format as text
from control.views.tables import units
from control.views.tables.column import Table, column
from control.views.tables.rows import TONE_OF, Cell, Row


class _Told(NamedTuple):
    finding: Finding
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow(Row):
    """A finding in words."""

    step: str = ""
    """View path where its next step is taken; empty: its own."""
    given: tuple[tuple[str, str], ...] = ()
    """Values that the form of its next step begins with."""
    consequences: tuple["FindingRow", ...] = ()
    """What it explains."""
    parts: tuple["FindingRow", ...] = ()
    """One for each broker, where it is about several."""


def _severity_cell(told: _Told) -> Cell:
    severity = told.finding.severity
    return Cell(-severity, severity.name.lower(), TONE_OF[severity])


def _since_cell(told: _Told) -> Cell:
    since_ms = told.finding.since_ms
    if since_ms is None:
        return Cell(None, "")
    return Cell(since_ms, f"since {text.clock_text(since_ms, now_ms=told.now_ms)}")


def _words(words: str) -> Cell:
    return Cell(words, words or text.NA)


FINDINGS: Final = Table(
    name="findings",
    about="A row per finding, the worst first",
    key=lambda told: told.finding.id,
    path=lambda told: told.finding.subject,
    columns=(
        column("severity", "severity", rank=1, cell=_severity_cell),
        column("label", "subject", rank=1, cell=lambda told: _words(told.finding.label)),
        column("title", "finding", rank=1,
               cell=lambda told: _words(text.phrase(told.finding.title, told.finding.facts))),
        column("reason", "reason", rank=2,
               cell=lambda it: _words(typed(text.phrase(it.finding.reason, it.finding.facts)))),
        column("since", "since", units.TIME, rank=2, cell=_since_cell),
        column("next_step", "next step", rank=2,
               cell=lambda told: _words(typed(told.finding.next_step))),
    ),
    unlisted=(
        column("operation", "operation", cell=lambda told: _words(str(told.finding.operation))),
    ),
)  # fmt: skip


def finding_row(finding: Finding, *, now_ms: int) -> FindingRow:
    """A finding in words, its figures filled in."""
    told = _Told(finding, now_ms)
    return FindingRow(
        key=FINDINGS.key(told),
        path=FINDINGS.path(told),
        cells=FINDINGS.cells(told),
        step=finding.step,
        given=finding.given,
        consequences=tuple(finding_row(it, now_ms=now_ms) for it in finding.consequences),
        parts=tuple(finding_row(it, now_ms=now_ms) for it in finding.parts),
    )


def consequence_words(row: FindingRow) -> str:
    """``hence 3 partitions offline, 12 partitions under-replicated``; empty: it has none."""
    words = [in_words(it) for it in row.consequences]
    return f"hence {', '.join(words)}" if words else ""


def in_words(row: FindingRow) -> str:
    """A finding in a few words: its title, with its label where that does not say how many."""
    title = row.title.text
    return title if title[:1].isdigit() else f"{row.label.text} {title}"
