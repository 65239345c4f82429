"""Now beside planned: what every broker carries before and after a plan, on one scale."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from control.views import format as text
from control.views.plans import Offer
from dashboard.figures.base import BAND, Figure, empty_figure, figure, nice_ticks, plain
from dashboard.theme import palette

HEADROOM: Final = 1.2
NARROWEST_PX: Final = (240.0, 130.0)
"""Of the plot in a window of 390 pixels: what has room there has room everywhere."""
CHARACTER_PX: Final = 7.0
LINE_PX: Final = 15.0
MARK_PX: Final = 8.0
"""From the middle of a point to its text."""
PLACES: Final = ("top center", "bottom center", "middle right", "middle left")


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


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def labels(points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[tuple[str, str]]:
    """Text and its place beside each point (pixels, y downwards): no two lie on each other. Where
    there is no room, a point's name joins that of the nearest point."""
    taken: dict[int, Box] = {}
    found: list[tuple[str, str]] = []
    for at, name in enumerate(names):
        boxes = {place: _box(points[at], name, place) for place in PLACES}
        lies = {it: any(_overlap(boxes[it], other) for other in taken.values()) for it in PLACES}
        free = [place for place, is_taken in lies.items() if not is_taken]
        if free:
            taken[at] = boxes[free[0]]
            found.append((name, free[0]))
            continue
        near = min(taken, key=lambda other: math.dist(points[at], points[other]))
        joined, place = f"{found[near][0]}, {name}", found[near][1]
        taken[near], found[near] = _box(points[near], joined, place), (joined, place)
        found.append(("", PLACES[0]))
    return found


def _named(offers: Sequence[Offer], most_x: float, most_y: float) -> list[tuple[str, str]]:
    """Their names in a plot whose axes end at these."""
    wide, high = NARROWEST_PX
    points = [
        (it.moved_bytes / most_x * wide, (1 - it.fullest_percent / most_y) * high) for it in offers
    ]
    return labels(points, [plain(it.name) for it in offers])


def _box(point: tuple[float, float], text: str, place: str) -> Box:
    (x, y), wide = point, len(text) * CHARACTER_PX
    down, across = place.split()
    lefts = {"left": x - MARK_PX - wide, "center": x - wide / 2, "right": x + MARK_PX}
    tops = {"top": y - MARK_PX - LINE_PX, "middle": y - LINE_PX / 2, "bottom": y + MARK_PX}
    return lefts[across], tops[down], lefts[across] + wide, tops[down] + LINE_PX


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


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
    highest = max([offer.fullest_percent for offer in offers], default=0.0)
    most_x, most_y = 1.12 * max([*moved, 1.0]), max(highest * 1.35, 1.0)
    named = _named(offers, most_x, most_y)
    points = {
        "type": "scatter",
        "mode": "markers+text",
        "x": moved,
        "y": [offer.fullest_percent for offer in offers],
        "text": [name for name, _ in named],
        "textposition": [place for _, place in named],
        "customdata": [
            [
                text.bytes_text(offer.moved_bytes),
                text.bytes_text(offer.lower_bound_bytes),
                plain(offer.name),
            ]
            for offer in offers
        ],
        "hovertemplate": "%{customdata[2]}: moves %{customdata[0]}, "
        "proven minimum %{customdata[1]}, fullest broker %{y:+.1f} %<extra></extra>",
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
    return figure(
        [points],
        scheme,
        keep="trade-off",
        showlegend=False,
        xaxis={
            "title": {"text": "bytes moved (left end of a line: proven minimum)"},
            "tickvals": ticks,
            "ticktext": [text.bytes_text(tick) for tick in ticks],
            "range": [-0.05 * max([*moved, 1.0]), most_x],
        },
        yaxis={
            "title": {"text": "fullest above the mean"},
            "ticksuffix": " %",
            "range": [0, most_y],
        },
    )
