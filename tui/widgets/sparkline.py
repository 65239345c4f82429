"""A line of block characters for a series; a gap stays a gap."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

BLOCKS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = " "


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The newest ``width`` buckets of ``values``, each at its maximum, scaled from 0.

    >>> sparkline([0.0, 1.0, None, 2.0], 4)
    '▁▅ █'
    """
    if width <= 0 or not values:
        return ""
    buckets = _buckets(values, min(width, len(values)))
    top = max((value for value in buckets if value is not None), default=0.0)
    return "".join(_block(value, top) for value in buckets)


def _buckets(values: Sequence[float | None], count: int) -> list[float | None]:
    size = len(values) / count
    edges = [round(index * size) for index in range(count + 1)]
    pieces = (values[start:end] for start, end in pairwise(edges))
    return [max((v for v in piece if v is not None), default=None) for piece in pieces]


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
