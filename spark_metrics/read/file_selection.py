"""Chooses the files of history that answer a question, pure.

Of every span the files of that span are there, and those of finer ones that were not merged into
it yet (``HistoryFile.is_rolled``): together they hold each reading once, up to the newest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from spark_metrics.history.sql import HistoryRange, bucket_ms
from spark_metrics.store.layout import HistoryFile
from spark_metrics.window.history_points import COARSER, FINE, SPANS_MS

LOOK_BACK_MS_MIN: Final = 25_000
"""How far back the newest point of a partition is looked for, at least."""
LOOK_BACK_INTERVALS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Files, and into which buckets their points are to be merged."""

    files: Sequence[str]
    bucket_ms: int


def files_for(files: Sequence[HistoryFile], span: HistoryRange) -> Choice:
    """Choose a chart's files: of the coarsest span that still fills its points, or of the next one
    that reaches back far enough.

    300 points over ten minutes (a bucket of 2 s) are fine ones; over a day (5 min) minutes;
    over a month (3 h) hours. Half an hour that was three days ago is minutes, too.
    """
    wanted = [name for name in SPANS_MS if SPANS_MS[name] <= bucket_ms(span)][-1]
    chosen = _reaching(files, wanted, span.since_ms)
    within = [file for file in _of(files, chosen) if _overlaps(file, span)]
    return Choice(files=[file.path for file in within], bucket_ms=bucket_ms(span, SPANS_MS[chosen]))


def files_of_span(
    files: Sequence[HistoryFile], span: str, since_ms: int, until_ms: int
) -> list[HistoryFile]:
    """The files of one span that reach into these times, and of finer ones what is not in it
    yet."""
    times = HistoryRange(since_ms=since_ms, until_ms=until_ms, points_max=1)
    return [file for file in _of(files, span) if _overlaps(file, times)]


def ranges_at(
    files: Sequence[HistoryFile], moments: Sequence[int], interval_ms: int
) -> Iterator[tuple[list[HistoryRange], list[str]]]:
    """Where to look for the newest points at or before these times, with the files that hold them:
    those of one span together. A time before history begins is left out."""
    for span, some in groupby(moments, key=lambda at_ms: _span_at(files, at_ms)):
        if span is None:
            continue
        back_ms = max(LOOK_BACK_MS_MIN, LOOK_BACK_INTERVALS * interval_ms, 2 * SPANS_MS[span])
        ranges = [HistoryRange(since_ms=it - back_ms, until_ms=it, points_max=1) for it in some]
        yield ranges, _within(files, span, ranges)


def files_at(files: Sequence[HistoryFile], span: HistoryRange) -> list[str]:
    """The files of the finest span that reaches back to the end of these times."""
    return _within(files, _span_at(files, span.until_ms) or FINE, [span])


def _within(files: Sequence[HistoryFile], chosen: str, ranges: Sequence[HistoryRange]) -> list[str]:
    return [file.path for file in _of(files, chosen) if any(_overlaps(file, it) for it in ranges)]


def _span_at(files: Sequence[HistoryFile], at_ms: int) -> str | None:
    """The finest span that has points as old as this."""
    oldest_ms = {span: _oldest(files, span) for span in SPANS_MS}
    return next((span for span, ms in oldest_ms.items() if ms is not None and ms <= at_ms), None)


def _reaching(files: Sequence[HistoryFile], span: str, since_ms: int) -> str:
    """Choose this span, or the next coarser one whose points begin early enough (or earlier at
    all)."""
    oldest_ms = _oldest(files, span)
    coarser = COARSER.get(span)
    if coarser is None or (oldest_ms is not None and oldest_ms <= since_ms + SPANS_MS[coarser]):
        return span
    further = _reaching(files, coarser, since_ms)
    further_ms = _oldest(files, further)
    if oldest_ms is None or (further_ms is not None and further_ms < oldest_ms):
        return further
    return span


def _of(files: Sequence[HistoryFile], span: str) -> list[HistoryFile]:
    finer = {name for name in SPANS_MS if SPANS_MS[name] < SPANS_MS[span]}
    return [
        file for file in files if file.span == span or (file.span in finer and not file.is_rolled)
    ]


def _oldest(files: Sequence[HistoryFile], span: str) -> int | None:
    return min((file.from_ms for file in _of(files, span)), default=None)


def _overlaps(file: HistoryFile, span: HistoryRange) -> bool:
    return file.until_ms >= span.since_ms and file.from_ms <= span.until_ms
