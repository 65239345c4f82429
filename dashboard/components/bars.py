"""Bars of the brokers: what each carries, the mean, and the band around it that counts as even.

Sent as markup, as the map is: each bar is a link to its broker, so keys reach it too.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dash import html

from control.views import format as text
from control.views.tables.brokers import state_away
from control.views.tables.rows import Row
from dashboard.components.markup import still
from dashboard.components.parts import attributes, empty
from dashboard.figures.base import BAND, nice_ticks

MEASURES: Final = {
    "size_bytes": "bytes",
    "replicas": "replicas",
    "leaders": "leaders",
    "in_bytes": "in/s",
}
ROOM: Final = 1.18
"""Of the largest bar: words stand over it."""
_SKEW_SHOWN_PERCENT: Final = 20.0
_ALL_LABELLED_MAX: Final = 12
"""More bars have no room for words over each."""
_NAMES_MAX: Final = 16
"""Of more bars not each is named."""


def broker_bars(rows: Sequence[Row], measure: str) -> Any:
    """One bar per broker; replicas are stacked into leaders and followers."""
    if not rows:
        return empty("no broker has reported yet")
    values = [value for row in rows if (value := _value(row, measure)) is not None]
    to_text, base = _units(measure)
    mean = sum(values) / len(values) if values else 0.0
    most = max([*values, mean * (1 + BAND), 1e-9])
    full = most * ROOM
    ticks = nice_ticks(most, base=base)
    step = math.ceil(len(rows) / _NAMES_MAX)
    bars = [
        _bar(row, measure, mean, full=full, is_crowded=len(rows) > _ALL_LABELLED_MAX,
             is_named=place % step == 0)
        for place, row in enumerate(rows)
    ]  # fmt: skip
    plot = html.Div(
        [
            *(html.Div(className="bars-line", style=_up(tick, full)) for tick in ticks),
            *bars,
            html.Div(className="bars-band", style=_up(mean * (1 - BAND), full, 2 * mean * BAND)),
            html.Div(className="bars-mean", style=_up(mean, full)),
        ],
        className="bars-plot",
    )
    scale = [html.Span(to_text(tick), style=_up(tick, full)) for tick in ticks]
    caption = [*_legend(measure), html.Span(f"mean {to_text(mean)}, band ±10 %")]
    return still(
        html.Div(
            [
                html.Div(caption, className="bars-caption"),
                html.Div(scale, className="bars-scale"),
                plot,
            ],
            className="bars",
        ),
        className="bars-box",
    )


def _bar(
    row: Row, measure: str, mean: float, *, full: float, is_crowded: bool, is_named: bool
) -> html.A:
    known, least = _value(row, measure), BAND * 100 if is_crowded else 0.0
    value = known or 0.0
    skew = (value - mean) / mean * 100 if mean and known is not None else 0.0
    over = text.signed_percent_text(skew) if mean and abs(skew) >= least else ""
    words = f"broker {row.broker.value}: {MEASURES[measure]} {row.cell(measure).text}"
    told = f"{words}, {text.signed_percent_text(skew)} against the mean" if mean else words
    if known is None:
        over, told = text.NA, words
    # An uneven broker is hatched: colour never stands alone.
    uneven = " uneven" if abs(skew) > _SKEW_SHOWN_PERCENT else ""
    if away := state_away(row):
        over, told, uneven = away, f"{words}, {row.status.text}", ""
    return html.A(
        [
            html.Span(over, className="bar-skew", style=_up(value, full)),
            *(
                html.Span(
                    className=f"bar-part {name}{uneven}", style={"height": f"{part / full:.2%}"}
                )
                for name, part in _parts(row, measure, value)
            ),
            html.Span(str(row.broker.value) if is_named else None, className="bar-name"),
        ],
        href=f"/{row.path}",
        className="bar",
        **attributes({"data-tip": told, "aria-label": told, "data-path": row.path}),
    )


def _parts(row: Row, measure: str, value: float) -> list[tuple[str, float]]:
    """From the top down."""
    if measure != "replicas":
        return [("leader", value)]
    leaders = _value(row, "leaders") or 0.0
    return [("follower", value - leaders), ("leader", leaders)]


def _legend(measure: str) -> list[html.Span]:
    if measure != "replicas":
        return []
    return [
        html.Span([html.I(className=f"bar-key {name}"), f"{name}s"])
        for name in ("leader", "follower")
    ]


def _up(value: float, full: float, height: float | None = None) -> dict[str, str]:
    """Where a value is, from the bottom."""
    tall = {} if height is None else {"height": f"{height / full:.2%}"}
    return {"bottom": f"{value / full:.2%}", **tall}


def _value(row: Row, measure: str) -> float | None:
    value = row.cell(measure).value
    return float(value) if isinstance(value, int | float) else None


def _units(measure: str) -> tuple[Callable[[float], str], int]:
    if measure == "size_bytes":
        return text.bytes_text, 1024
    if measure == "in_bytes":
        return text.byte_rate_text, 1024
    return text.count_text, 1000
