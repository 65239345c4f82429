"""Lines over time: throughput, lag, size."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final
from zlib import crc32

from control.views import format as text
from control.views.series import Series, Span, known_stretch
from control.views.tables.journal import Mark
from dashboard.figures.base import Figure, empty_figure, figure, nice_ticks, plain, times
from dashboard.theme import palette

DAY_MS: Final = 86_400_000
MINUTES_MS: Final = 5 * 60_000
"""A chart of less has several ticks to a minute."""
PEAK_FACTOR: Final = 1.01
_TEXT_OF: Final[dict[str, tuple[Callable[[float], str], int]]] = {
    "bytes/s": (text.byte_rate_text, 1024),
    "bytes": (text.bytes_text, 1024),
    "records/s": (text.record_rate_text, 1000),
    "records": (text.count_text, 1000),
    "ms": (text.duration_text, 1000),
    "%": (text.signed_percent_text, 1000),
    "": (text.count_text, 1000),
}


def lines(
    series: Sequence[Series],
    scheme: str,
    *,
    keep: str,
    colors: Sequence[str] = (),
    marks: Sequence[Mark] = (),
    span: Span | None = None,
) -> Figure:
    """One line per series, all of one unit; areas when there are at most two. ``marks`` are
    what happened meanwhile: a line through the chart, its words on hover. The axis covers
    ``span``, so that figures which stopped coming are seen to have stopped, but begins with the
    first figures where these are young."""
    shown = [item for item in series if item.last is not None]
    if not shown:
        return empty_figure("no history yet", scheme)
    found = colors or colors_by_name([item.name for item in shown], palette(scheme).lines)
    to_text, base = _TEXT_OF[shown[0].unit]
    largest = max(value for item in shown for value in item.peaks if value is not None)
    lowest = min(0.0, *(value for item in shown for value in item.values if value is not None))
    ticks = [-tick for tick in nice_ticks(-lowest, base=base)[:0:-1]]
    ticks += nice_ticks(largest, base=base)
    colored = [(item, found[place % len(found)]) for place, item in enumerate(shown)]
    data = [_line(item, color, to_text, is_area=len(shown) <= 2) for item, color in colored]
    data += [_peaks(item, color, to_text) for item, color in colored if has_peaks(item)]
    return figure(
        data,
        scheme,
        keep=keep,
        showlegend=len(shown) > 1,
        hovermode="x unified",
        **_marked(marks, scheme),
        xaxis={
            "type": "date",
            "tickformat": _tick_format(_stretch_ms(shown)),
            "hoverformat": "%H:%M:%S",
            "nticks": 4,
            "tickangle": 0,
            **_range_of(None if span is None else known_stretch(shown, span)),
        },
        yaxis={
            "tickvals": ticks,
            "ticktext": [to_text(tick) for tick in ticks],
            "range": [lowest * 1.05, max(largest * 1.05, 1)],
        },
    )


def colors_by_name(names: Sequence[str], colors: Sequence[str]) -> list[str]:
    """A colour for each name, whatever its rank; names share one only where they are more than
    the colours."""
    taken: dict[str, int] = {}
    for name in sorted(names):
        first = crc32(name.encode())
        tried = [(first + step) % len(colors) for step in range(len(colors))]
        taken[name] = next((n for n in tried if n not in taken.values()), tried[0])
    return [colors[taken[name]] for name in names]


def throughput(
    series: Sequence[Series],
    scheme: str,
    *,
    keep: str,
    marks: Sequence[Mark] = (),
    span: Span | None = None,
) -> Figure:
    """Bytes in and out, in their own colours."""
    colors = palette(scheme)
    wanted = [item for item in series if item.name in {"in", "out"}]
    own = (colors.incoming, colors.outgoing)
    return lines(wanted, scheme, keep=keep, colors=own, marks=marks, span=span)


def _range_of(span: Span | None) -> dict[str, Any]:
    return {} if span is None else {"range": times([span.since_ms, span.until_ms])}


def _tick_format(stretch_ms: int) -> str:
    if stretch_ms <= MINUTES_MS:
        return "%H:%M:%S"
    return "%H:%M" if stretch_ms <= DAY_MS else "%d %b %H:%M"


def _stretch_ms(shown: Sequence[Series]) -> int:
    return max(item.at_ms[-1] - item.at_ms[0] for item in shown)


def _marked(marks: Sequence[Mark], scheme: str) -> dict[str, Any]:
    color = palette(scheme).muted
    at = times([mark.at_ms for mark in marks])
    return {
        "shapes": [
            {
                "type": "line",
                "x0": when,
                "x1": when,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": color, "width": 1, "dash": "dot"},
            }
            for when in at
        ],
        "annotations": [
            {
                "x": when,
                "yref": "paper",
                "y": 1,
                "text": "◆",
                "hovertext": plain(mark.words),
                "showarrow": False,
                "font": {"color": color, "size": 11},
            }
            for when, mark in zip(at, marks, strict=True)
        ],
    }


def _line(
    item: Series, color: str, to_text: Callable[[float], str], *, is_area: bool
) -> dict[str, Any]:
    item = _without_edges(item)
    known = ["" if value is None else to_text(value) for value in item.values]
    line: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "name": plain(item.name),
        "x": times(item.at_ms),
        "y": list(item.values),
        "customdata": known,
        "hovertemplate": "%{customdata}<extra>%{fullData.name}</extra>",
        "line": {"color": color, "width": 2},
        "connectgaps": False,
    }
    if is_area:
        line |= {"fill": "tozeroy", "fillcolor": _faint(color)}
    return line


def has_peaks(item: Series) -> bool:
    """Whether some point stands for readings that differ."""
    return any(
        high is not None and value is not None and high > value * PEAK_FACTOR
        for high, value in zip(item.high, item.values, strict=bool(item.high))
    )


def _peaks(item: Series, color: str, to_text: Callable[[float], str]) -> dict[str, Any]:
    """The greatest reading of each point, dotted above its line."""
    peaks = replace(item, name=f"{item.name} (peak)", values=item.high)
    line = _line(peaks, color, to_text, is_area=False)
    return {**line, "showlegend": False, "line": {"color": color, "width": 1, "dash": "dot"}}


def _without_edges(item: Series) -> Series:
    """Without unknown values before the first and after the last known one: the chart would
    fill the ground under them."""
    places = [place for place, value in enumerate(item.values) if value is not None]
    kept = slice(places[0], places[-1] + 1)
    return replace(item, at_ms=item.at_ms[kept], values=item.values[kept])


def _faint(color: str) -> str:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.10)"
