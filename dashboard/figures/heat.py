"""The heat map: broker x topic, on log colours, since sizes are log-normal."""

import math
from collections.abc import Callable
from typing import Any, Final

from control.views import format as text
from control.views.overview import HeatMap
from dashboard.figures.base import Figure, empty_figure, figure
from dashboard.theme import palette

MEASURES: Final = {
    "size_bytes": "bytes",
    "replicas": "replicas",
    "leaders": "leaders",
    "in_bytes_per_s": "traffic",
    "lag": "lag",
}


def heat_figure(heat: HeatMap, scheme: str) -> Figure:
    """Topics across, brokers down; what a broker does not hold stays empty."""
    if not heat.topics or not heat.brokers:
        return empty_figure("no partition has been reported yet", scheme)
    to_text = _unit(heat.measure)
    colors = palette(scheme)
    known = [value for row in heat.values for value in row if not math.isnan(value)]
    if not known:
        return empty_figure(f"no {MEASURES[heat.measure]} anywhere", scheme)
    steps = len(colors.heat) - 1
    data = {
        "type": "heatmap",
        "x": list(heat.topics),
        "y": [str(broker) for broker in heat.brokers],
        "z": [[_log(value) for value in row] for row in heat.values],
        "customdata": [[to_text(value) for value in row] for row in heat.values],
        "hovertemplate": "%{x} on %{y}: %{customdata}<extra></extra>",
        "hoverongaps": False,
        "colorscale": [[place / steps, color] for place, color in enumerate(colors.heat)],
        "xgap": 2,
        "ygap": 2,
        "colorbar": _color_bar(known, to_text, colors.muted),
    }
    return figure(
        [data],
        scheme,
        keep=f"heat {heat.measure}",
        margin={"l": 48, "r": 8, "t": 12, "b": 60},
        xaxis={"type": "category", "showgrid": False, "tickangle": -35},
        yaxis={"type": "category", "showgrid": False, "autorange": "reversed"},
    )


def _unit(measure: str) -> Callable[[float], str]:
    if measure == "size_bytes":
        return text.bytes_text
    return text.byte_rate_text if measure == "in_bytes_per_s" else text.count_text


def _log(value: float) -> float | None:
    return None if math.isnan(value) or value <= 0 else math.log10(value)


def _color_bar(known: list[float], to_text: Callable[[float], str], color: str) -> dict[str, Any]:
    low, high = math.log10(min(known)), math.log10(max(known))
    places = [low, high] if high - low < 0.3 else [low, (low + high) / 2, high]
    return {
        "thickness": 10,
        "tickvals": places,
        "ticktext": [to_text(10**place) for place in places],
        "tickfont": {"color": color, "size": 11},
        "outlinewidth": 0,
    }
