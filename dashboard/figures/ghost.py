"""A plan on the map: the same colours now and planned, and which cells grow (▲) or shrink (▼)."""

import math
from typing import Any, Final

from control.views.ghost import GROWS, SHRINKS, GhostMap, to_text
from control.views.overview import HeatMap
from dashboard.figures.base import Figure
from dashboard.figures.heat import heat_figure
from dashboard.theme import palette

_SHAPES: Final = {GROWS: ("triangle-up", "grows"), SHRINKS: ("triangle-down", "shrinks")}


def now_figure(found: GhostMap, scheme: str) -> Figure:
    """What brokers hold of the topics that the plan changes."""
    return _on_one_scale(found, heat_figure(found.now, scheme))


def planned_figure(found: GhostMap, scheme: str) -> Figure:
    """The same after the plan; a cell that is left empty has its sign alone."""
    figure = _on_one_scale(found, heat_figure(found.planned, scheme))
    figure["data"] += [_marks(found, sign, scheme) for sign in _SHAPES]
    figure["layout"]["showlegend"] = True
    figure["layout"]["margin"] = {**figure["layout"]["margin"], "t": 36}
    return figure


def _marks(found: GhostMap, sign: str, scheme: str) -> dict[str, Any]:
    colors = palette(scheme)
    shape, words = _SHAPES[sign]
    cells = [cell for row in found.cells for cell in row if cell.sign == sign]
    unit = to_text(found.measure)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": words,
        "x": [cell.topic for cell in cells],
        "y": [str(cell.broker) for cell in cells],
        "customdata": [
            f"{unit(cell.before)} → {unit(cell.after)} ({cell.difference})" for cell in cells
        ],
        "hovertemplate": f"%{{x}} on %{{y}} {words}: %{{customdata}}<extra></extra>",
        "marker": {
            "symbol": shape,
            "size": 11,
            "color": colors.outgoing if sign == GROWS else colors.lines[2],
            "line": {"color": colors.surface, "width": 1.5},
        },
    }


def _on_one_scale(found: GhostMap, figure: Figure) -> Figure:
    """Colours mean the same in both."""
    known = [value for heat in (found.now, found.planned) for value in _known(heat)]
    if known and figure["data"]:
        low, high = math.log10(min(known)), math.log10(max(known))
        figure["data"][0] |= {"zmin": low, "zmax": max(high, low + 1e-9)}
    return figure


def _known(heat: HeatMap) -> list[float]:
    return [value for row in heat.values for value in row if not math.isnan(value)]
