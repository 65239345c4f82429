"""The map of all partitions as a figure: one byte a cell, whatever the size of the cluster."""

import base64
import math
from typing import Any, Final

from control.views.cluster.partition_map import LEVELS, MEASURES, PartitionMap
from dashboard.figures.base import Figure, empty_figure, figure, plain
from dashboard.theme import palette

GAPS_BELOW: Final = 4_000
"""So many cells have lines between them; more would be nothing but lines."""
ROW_NAMES_MAX: Final = 14


def cells_figure(shown: PartitionMap, scheme: str, *, keep: str = "") -> Figure:
    """Cells in rows; a row is named by the first topic in it. Dragging zooms into rows."""
    if not len(shown.values):
        return empty_figure("no partition passes the filter", scheme)
    if shown.ends is None:
        return empty_figure(f"no {MEASURES[shown.measure]} anywhere", scheme)
    colors = palette(scheme)
    steps = len(colors.heat) - 1
    # Level 0, nothing, is the ground; the others are even steps of the heat colours.
    scale = [[0.0, colors.line], [0.5 / LEVELS, colors.line], [0.5 / LEVELS, colors.heat[0]]]
    scale += [[place / steps, color] for place, color in enumerate(colors.heat) if place]
    has_gaps = len(shown.values) <= GAPS_BELOW
    data = {
        "type": "heatmap",
        "z": {
            "dtype": "u1",
            "bdata": base64.b64encode(shown.levels().tobytes()).decode(),
            "shape": f"{shown.rows}, {shown.columns}",
        },
        "zmin": 0,
        "zmax": LEVELS,
        "zsmooth": False,
        # What is under the pointer is asked of the server.
        "hoverinfo": "none",
        "colorscale": scale,
        "xgap": 1 if has_gaps else 0,
        "ygap": 1 if has_gaps else 0,
        "colorbar": _color_bar(shown, colors.muted),
    }
    places = range(0, shown.rows, max(1, math.ceil(shown.rows / ROW_NAMES_MAX)))
    return figure(
        [data],
        scheme,
        keep=f"cells {keep} {shown.measure} {shown.columns}",
        margin={"l": 48, "r": 8, "t": 12, "b": 12},
        dragmode="zoom",
        xaxis={"visible": False, "fixedrange": True, "range": [-0.5, shown.columns - 0.5]},
        yaxis={
            "range": [shown.rows - 0.5, -0.5],
            "fixedrange": False,
            "showgrid": False,
            "zeroline": False,
            "tickvals": list(places),
            "ticktext": _row_names(shown, places),
        },
    )


def _row_names(shown: PartitionMap, rows: range) -> list[str]:
    """The first topic of each, where it is another than that of the row named before."""
    topics = [_topic_of(shown, row) for row in rows]
    before = ["", *topics]
    named = zip(topics, before, strict=False)
    return [plain(_short(topic)) if topic != last else "" for topic, last in named]


def _topic_of(shown: PartitionMap, row: int) -> str:
    return str(shown.table["topic"][row * shown.columns].as_py())


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"


def _color_bar(shown: PartitionMap, color: str) -> dict[str, Any]:
    low, high = shown.ends or (1.0, 1.0)
    middle = math.sqrt(low * high)
    places = {1: low}
    if high > low * 1.01:
        places |= {LEVELS: high}
    if high > low * 4:
        places |= {(LEVELS + 1) // 2: middle}
    if shown.measure in {"lag", "isr"}:
        places = {place: round(value) for place, value in places.items()}
    return {
        "thickness": 10,
        "tickvals": list(places),
        "ticktext": [shown.to_text(value) for value in places.values()],
        "tickfont": {"color": color, "size": 11},
        "outlinewidth": 0,
    }
