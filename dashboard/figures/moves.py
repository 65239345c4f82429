"""Now beside planned: what every broker carries before and after a plan, on one scale."""

from collections.abc import Mapping, Sequence
from typing import Final

from control.views import format as text
from control.views.plans import Offer
from dashboard.figures.base import BAND, Figure, empty_figure, figure, nice_ticks, plain
from dashboard.theme import palette

HEADROOM: Final = 1.2


def loads(values: Mapping[int, float], top: float, scheme: str, *, is_plan: bool) -> Figure:
    """Bytes per broker; ``top`` is the largest of both charts, so that they compare."""
    if not values:
        return empty_figure("no broker", scheme)
    colors = palette(scheme)
    mean = sum(values.values()) / len(values)
    ticks = nice_ticks(max(top, 1), base=1024)
    skews = [(value - mean) / mean * 100 if mean else 0.0 for value in values.values()]
    bars = {
        "type": "bar",
        "x": [str(broker) for broker in values],
        "y": list(values.values()),
        "text": [text.signed_percent_text(skew) for skew in skews],
        "textposition": "outside",
        "customdata": [text.bytes_text(value) for value in values.values()],
        "hovertemplate": "broker %{x}: %{customdata}<extra></extra>",
        "marker": {
            "color": colors.leader,
            "pattern": {
                "shape": "/" if is_plan else "",
                "bgcolor": colors.leader,
                "fgcolor": colors.surface,
                "size": 7,
                "solidity": 0.25,
            },
        },
        "cliponaxis": False,
    }
    band = {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": mean * (1 - BAND),
        "y1": mean * (1 + BAND),
        "fillcolor": colors.band,
        "line": {"width": 0},
    }
    return figure(
        [bars],
        scheme,
        keep=f"plan {is_plan}",
        showlegend=False,
        shapes=[band],
        xaxis={"type": "category", "showgrid": False},
        yaxis={
            "tickvals": ticks,
            "ticktext": [text.bytes_text(tick) for tick in ticks],
            "range": [0, max(top, 1) * HEADROOM],
        },
    )


def trade_off(offers: Sequence[Offer], scheme: str) -> Figure:
    """Bytes moved against balance reached; a line leads from each point to its proven minimum."""
    colors = palette(scheme)
    moved = [float(offer.moved_bytes) for offer in offers]
    ticks = nice_ticks(max([*moved, 1.0]), base=1024)
    spare = [
        0.0
        if offer.lower_bound_bytes is None
        else max(offer.moved_bytes - offer.lower_bound_bytes, 0.0)
        for offer in offers
    ]
    points = {
        "type": "scatter",
        "mode": "markers+text",
        "x": moved,
        "y": [offer.fullest_percent for offer in offers],
        "text": [plain(offer.name) for offer in offers],
        "textposition": "top center",
        "customdata": [
            [text.bytes_text(offer.moved_bytes), text.bytes_text(offer.lower_bound_bytes)]
            for offer in offers
        ],
        "hovertemplate": "%{text}: moves %{customdata[0]}, proven minimum %{customdata[1]}, "
        "fullest broker %{y:+.1f} %<extra></extra>",
        "marker": {"size": 12, "color": colors.leader, "symbol": "diamond"},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [0.0] * len(offers),
            "arrayminus": spare,
            "color": colors.muted,
            "thickness": 1.5,
        },
        "cliponaxis": False,
    }
    highest = max([offer.fullest_percent for offer in offers], default=0.0)
    return figure(
        [points],
        scheme,
        keep="trade-off",
        showlegend=False,
        xaxis={
            "title": {"text": "bytes moved (left end of a line: proven minimum)"},
            "tickvals": ticks,
            "ticktext": [text.bytes_text(tick) for tick in ticks],
            "range": [-0.05 * max([*moved, 1.0]), 1.12 * max([*moved, 1.0])],
        },
        yaxis={
            "title": {"text": "fullest above the mean"},
            "ticksuffix": " %",
            "range": [0, max(highest * 1.35, 1.0)],
        },
    )
