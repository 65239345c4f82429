"""Lines of block characters: a series on an axis of time, and bars."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from control.views.series import Span

BLOCKS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = " "


def column_of(at_ms: int, span: Span, width: int) -> int:
    """Where a time stands on an axis of ``width`` characters; its ends for times beyond them."""
    place = (at_ms - span.since_ms) * width // max(1, span.until_ms - span.since_ms)
    return max(0, min(place, width - 1))


def sparkline(at_ms: Sequence[int], values: Sequence[float | None], span: Span, width: int) -> str:
    """Values from 0 to the largest, each where its time stands in ``span``: a character has the
    largest of its time, or the one before. What is not known stays empty.

    >>> sparkline([0, 10, 20, 30], [0.0, 1.0, None, 2.0], Span(since_ms=0, until_ms=40), 4)
    '▁▅ █'
    """
    columns: list[float | None] = [None] * max(0, width)
    for since_ms, until_ms, value in _held(at_ms, values):
        if not columns or until_ms <= span.since_ms or since_ms > span.until_ms:
            continue
        first = column_of(since_ms, span, width)
        for place in range(first, max(first, column_of(until_ms - 1, span, width)) + 1):
            columns[place] = max(value, columns[place] or 0.0)
    top = max((value for value in columns if value is not None), default=0.0)
    return "".join(_block(value, top) for value in columns)


def _held(at_ms: Sequence[int], values: Sequence[float | None]) -> Iterator[tuple[int, int, float]]:
    """From when to when each known value stands: until the next, the last for a usual step."""
    step_ms = int(median(b - a for a, b in pairwise(at_ms))) if len(at_ms) > 1 else 1
    ends = (*at_ms[1:], at_ms[-1] + step_ms) if at_ms else ()
    for since_ms, until_ms, value in zip(at_ms, ends, values, strict=True):
        if value is not None:
            yield since_ms, until_ms, value


def _block(value: float | None, top: float) -> str:
    if value is None:
        return GAP
    if top <= 0:
        return BLOCKS[0]
    return BLOCKS[min(int(value / top * len(BLOCKS)), len(BLOCKS) - 1)]


def bar(share: float, width: int) -> str:
    """A bar of eighths of a character; ``share`` is 0 to 1.

    >>> bar(0.5, 4)
    '██'
    """
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest].strip() if rest else "")
