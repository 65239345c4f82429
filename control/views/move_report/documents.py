"""A report as sections of words and tables, and these as Markdown, HTML and JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, Template

from control.move.state import Moment
from control.views import format as text
from control.views.move_report.group_lag import GroupLag, Lag, LagFigures
from control.views.move_report.report import MoveReport

CHANGES_MAX: Final = 1_000
"""Partitions that a page lists; the JSON has all."""
NOT_TOLD: Final = "not told"
NO_HISTORY: Final = "no history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A title, sentences, and a table (empty: none)."""

    title: str
    words: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def title_of(report: MoveReport) -> str:
    """``Move mv-3f9a21c4: done``."""
    return f"Move {report.operation_id}: {report.outcome}"


def sections_of(report: MoveReport) -> tuple[Section, ...]:
    """All of a report, in the order of reading."""
    return (
        _summary(report),
        _estimate(report),
        _waves(report),
        _moments("Throttle", report.throttles, "No throttle was set"),
        *([_moments("Yields to consumers", report.yields, "")] if report.yields else []),
        *([_moments("Pauses", report.pauses, "")] if report.pauses else []),
        _groups(report),
        *([Section(title="Notes", words=report.notes)] if report.notes else []),
        _changes(report),
    )


def _summary(report: MoveReport) -> Section:
    throttle = report.throttle_asked
    asked = text.byte_rate_text(throttle) if isinstance(throttle, int) else throttle
    facts = {
        "Result": report.message or NOT_TOLD,
        "Asked for by": report.who or NOT_TOLD,
        "Reason": report.reason or "none given",
        "Rolls back": report.rollback_of,
        "Cluster": report.cluster or NOT_TOLD,
        "Submitted": text.date_time_text(report.submitted_ms),
        "Started": _time(report.started_ms, "never"),
        "Ended": _time(report.finished_ms, NOT_TOLD),
        "Partitions": f"{_count(report.partitions_done)} of {report.partitions:,} moved",
        "Data to copy": text.bytes_text(report.planned_bytes),
        "Data copied": _known(report.copied_bytes, text.bytes_text),
        "Throttle asked for": asked or NOT_TOLD,
    }
    rows = [(name, value) for name, value in facts.items() if value is not None]
    return Section(title="Summary", heads=("What", "Value"), rows=rows)


def _estimate(report: MoveReport) -> Section:
    took = _known(report.took_s, lambda seconds: text.duration_text(seconds * 1000))
    if report.estimated_s is None:
        words = f"No time was estimated: there was no throttle. It took {took}."
        return Section(title="Estimate and truth", words=(words,))
    low, high = (text.duration_text(seconds * 1000) for seconds in report.estimated_s)
    words = f"Estimated {low} to {high}; it took {took}"
    share = report.took_of_estimate
    if share is None:
        told = "not compared: it was held up, changed or not done"
        return Section(title="Estimate and truth", words=(f"{words}; {told}.",))
    return Section(
        title="Estimate and truth", words=(f"{words}, {share:.1f} of the estimate's middle.",)
    )


def _waves(report: MoveReport) -> Section:
    rows = [
        (
            wave.words,
            text.date_time_text(wave.began_ms),
            _known(wave.took_ms, text.duration_text),
        )
        for wave in report.waves
    ]
    words = () if rows else ("No wave began.",)
    return Section(title="Waves", words=words, heads=("Wave", "Began", "Took"), rows=rows)


def _moments(title: str, moments: Sequence[Moment], none: str) -> Section:
    rows = [(text.date_time_text(it.at_ms), it.words or it.kind.value) for it in moments]
    return Section(
        title=title, words=() if rows else (none,), heads=("When", "What happened"), rows=rows
    )


def _groups(report: MoveReport) -> Section:
    title = "Lag of groups that read what moved"
    if report.groups is None:
        return Section(title=title, words=(f"Not known: {report.groups_missing}.",))
    if not report.groups:
        return Section(title=title, words=("No group had commits in what moved.",))
    words = (
        "Mean of a partition, the greatest of a partition, and the greatest time lag. "
        "Before and after are as long as the move, at least a minute.",
    )
    heads = ("Group", "Partitions", "Before", "During", "After")
    rows = [row for group in report.groups for row in _group_rows(group)]
    return Section(title=title, words=words, heads=heads, rows=rows)


def _group_rows(group: GroupLag) -> Sequence[Sequence[str]]:
    return tuple(
        (group.group_id, name, *(_lag_text(it) for it in (lag.before, lag.during, lag.after)))
        for name, lag in _sides(group)
    )


def _sides(group: GroupLag) -> Sequence[tuple[str, Lag]]:
    return (("moved", group.moved), ("not moved", group.stayed))


def _lag_text(lag: LagFigures) -> str:
    if lag.mean is None:
        return NO_HISTORY
    time_lag = _known(lag.time_lag_ms, text.duration_text)
    return f"{text.count_text(lag.mean)} / {text.count_text(lag.most)} / {time_lag}"


def _changes(report: MoveReport) -> Section:
    title = "Partitions"
    if not report.changes:
        return Section(title=title, words=("The plan is not kept.",))
    shown, left = report.changes[:CHANGES_MAX], len(report.changes) - CHANGES_MAX
    rows = [
        (
            it.partition,
            text.ids_text(it.before),
            text.ids_text(it.after),
            text.bytes_text(it.planned_bytes),
            it.fate or NOT_TOLD,
        )
        for it in shown
    ]
    words = (f"The first {CHANGES_MAX:,}; the JSON has {left:,} more.",) if left > 0 else ()
    heads = ("Partition", "Before", "After", "Data to copy", "Ended")
    return Section(title=title, words=words, heads=heads, rows=rows)


def _known(value: float | None, to_text: Callable[[float], str]) -> str:
    return NOT_TOLD if value is None else to_text(value)


def _count(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"


def _time(at_ms: int | None, missing: str) -> str:
    return missing if at_ms is None else text.date_time_text(at_ms)


def markdown(report: MoveReport) -> str:
    """For wikis and tickets."""
    lines = [f"# {title_of(report)}", ""]
    for section in sections_of(report):
        lines += [f"## {section.title}", ""]
        lines += [line for words in section.words for line in (_plain(words), "")]
        if section.rows:
            lines += [_row(section.heads), _row(["---"] * len(section.heads))]
            lines += [*map(_row, section.rows), ""]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(words: str) -> str:
    """One line that Markdown leaves as it is."""
    line = " ".join(words.split())
    marks = ("\\", "|", "*", "_", "`", "<", "[")
    return line.translate({ord(mark): f"\\{mark}" for mark in marks}) if line != "---" else line


def html(report: MoveReport) -> str:
    """One file that stands by itself, also in print."""
    return _template().render(title=title_of(report), sections=sections_of(report))


@cache
def _template() -> Template:
    source = Path(__file__).with_name("report.html.j2").read_text()
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)


def as_json(report: MoveReport) -> str:
    """All of it, for programs."""
    return json.dumps(report.document(), indent=2) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A file that a report is written as."""

    write: Callable[[MoveReport], str]
    media_type: str


WRITERS: Final[Mapping[str, FileKind]] = {
    "html": FileKind(write=html, media_type="text/html; charset=utf-8"),
    "md": FileKind(write=markdown, media_type="text/markdown; charset=utf-8"),
    "json": FileKind(write=as_json, media_type="application/json"),
}
