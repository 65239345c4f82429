"""Bars of the brokers: what each carries, the mean, and the band around it that counts as even."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from control.views import format as text
from control.views.rows import BrokerRow
from dashboard.figures.base import Figure, empty_figure, figure, nice_ticks
from dashboard.theme import Palette, palette

BAND: Final = 0.10
"""Within this share of the mean a broker counts as even."""

MEASURES: Final = {
    "size_bytes": "bytes",
    "replicas": "replicas",
    "leaders": "leaders",
    "in_bytes": "traffic",
}
_SKEW_SHOWN_PERCENT: Final = 20.0
_ALL_LABELLED_MAX: Final = 12
"""More bars have no room for words over each."""


def broker_bars(rows: Sequence[BrokerRow], measure: str, scheme: str) -> Figure:
    """One bar per broker; replicas are stacked into leaders and followers."""
    values = [_value(row, measure) for row in rows]
    if not rows:
        return empty_figure("no broker has reported yet", scheme)
    colors = palette(scheme)
    names = [str(row.broker.value) for row in rows]
    to_text, base = _units(measure)
    mean = sum(values) / len(values)
    top = max([*values, mean * (1 + BAND), 1e-9])
    ticks = nice_ticks(top, base=base)
    data = (
        _stacked(rows, names, colors)
        if measure == "replicas"
        else [_bars(rows, names, measure, colors)]
    )
    return figure(
        [*data, _skews(names, values, mean, colors)],
        scheme,
        keep=f"brokers {measure}",
        barmode="stack",
        bargap=0.35,
        showlegend=measure == "replicas",
        shapes=_mean_and_band(mean, colors),
        annotations=[_caption(mean, to_text, colors)],
        xaxis={"type": "category", "showgrid": False},
        yaxis={
            "tickvals": ticks,
            "ticktext": [to_text(tick) for tick in ticks],
            "range": [0, top * 1.18],
        },
    )


def _value(row: BrokerRow, measure: str) -> float:
    value = row.cell(measure).value
    return float(value) if isinstance(value, int | float) else 0.0


def _units(measure: str) -> tuple[Callable[[float], str], int]:
    if measure == "size_bytes":
        return text.bytes_text, 1024
    if measure == "in_bytes":
        return text.byte_rate_text, 1024
    return text.count_text, 1000


def _bars(
    rows: Sequence[BrokerRow], names: Sequence[str], measure: str, colors: Palette
) -> dict[str, Any]:
    mean = sum(_value(row, measure) for row in rows) / len(rows)
    uneven = [
        mean > 0 and abs(_value(row, measure) - mean) / mean * 100 > _SKEW_SHOWN_PERCENT
        for row in rows
    ]
    return {
        "type": "bar",
        "name": MEASURES[measure],
        "x": list(names),
        "y": [_value(row, measure) for row in rows],
        "customdata": [row.cell(measure).text for row in rows],
        "hovertemplate": "broker %{x}: %{customdata}<extra></extra>",
        "marker": {
            "color": colors.leader,
            # An uneven broker is hatched: colour never stands alone.
            "pattern": {
                "shape": ["/" if item else "" for item in uneven],
                "bgcolor": colors.leader,
                "fgcolor": colors.surface,
                "size": 7,
                "solidity": 0.35,
            },
        },
    }


def _stacked(
    rows: Sequence[BrokerRow], names: Sequence[str], colors: Palette
) -> list[dict[str, Any]]:
    leaders = [_value(row, "leaders") for row in rows]
    followers = [_value(row, "replicas") - led for row, led in zip(rows, leaders, strict=True)]
    return [
        {
            "type": "bar",
            "name": name,
            "x": list(names),
            "y": values,
            "hovertemplate": "broker %{x}: %{y:,} " + name + "<extra></extra>",
            "marker": {"color": color},
        }
        for name, values, color in (
            ("leaders", leaders, colors.leader),
            ("followers", followers, colors.follower),
        )
    ]


def _mean_and_band(mean: float, colors: Palette) -> list[dict[str, Any]]:
    across = {"xref": "paper", "x0": 0, "x1": 1, "yref": "y", "layer": "above"}
    return [
        {
            **across,
            "type": "rect",
            "y0": mean * (1 - BAND),
            "y1": mean * (1 + BAND),
            "fillcolor": colors.band,
            "line": {"width": 0},
        },
        {
            **across,
            "type": "line",
            "y0": mean,
            "y1": mean,
            "line": {"color": colors.mean, "width": 1.5, "dash": "dot"},
        },
    ]


def _skews(
    names: Sequence[str], values: Sequence[float], mean: float, colors: Palette
) -> dict[str, Any]:
    """How far each bar is from the mean, written over it; of many only those beyond the band."""
    skews = [(value - mean) / mean * 100 if mean else 0.0 for value in values]
    least = BAND * 100 if len(values) > _ALL_LABELLED_MAX else 0.0
    return {
        "type": "scatter",
        "mode": "text",
        "x": list(names),
        "y": list(values),
        "text": [text.signed_percent_text(it) if abs(it) >= least else "" for it in skews],
        "textposition": "top center",
        "textfont": {"color": colors.muted, "size": 12},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }


def _caption(mean: float, to_text: Callable[[float], str], colors: Palette) -> dict[str, Any]:
    return {
        "xref": "paper",
        "yref": "paper",
        "x": 1,
        "y": 1,
        "xanchor": "right",
        "yanchor": "bottom",
        "text": f"mean {to_text(mean)}, band ±10 %",
        "showarrow": False,
        "font": {"color": colors.muted, "size": 12},
    }
