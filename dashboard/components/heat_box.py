"""The map of brokers and topics: a picture of one pixel a cell, with names, a scale and signs.

Drawn here and sent as markup: it stands with the first text of a page, before any chart library
has been read. The browser (``assets/modules/tips.js``) tells the value of the cell under the
pointer.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
from dash import html
from numpy.typing import NDArray

from control.views import format as text
from control.views.plan_map import GROWS, SHRINKS, PlanCell, PlanMap
from control.views.snapshots.overview import REST, HeatMap
from dashboard.components.markup import still
from dashboard.components.parts import attributes, empty
from dashboard.components.raster import picture_of
from dashboard.theme import Palette, palette

MEASURES: Final = {
    "size_bytes": "bytes",
    "replicas": "replicas",
    "leaders": "leaders",
    "in_bytes_per_s": "in/s",
    "lag": "total lag",
}
ROW_NAMES_MAX: Final = 12
COLUMN_NAMES_MAX: Final = 20
NAME_CHARACTERS_MAX: Final = 15
_SIGN_WORDS: Final = {GROWS: "grows", SHRINKS: "shrinks"}

Ends = tuple[float, float]
"""The least and the most that colours stand for."""


def heat_box(heat: HeatMap, scheme: str) -> Any:
    """Topics across, brokers down; what a broker does not hold stays empty."""
    if not heat.topics or not heat.brokers:
        return empty("no partition has been reported yet")
    ends = ends_of(heat)
    if ends is None:
        return empty(f"no {MEASURES[heat.measure]} anywhere")
    return _box(heat, heat.words(_unit(heat.measure)), ends, scheme)


def plan_boxes(found: PlanMap, scheme: str) -> tuple[Any, Any]:
    """Now and planned, on one scale; planned with a sign on each cell that grows or shrinks."""
    both = [ends for heat in (found.now, found.planned) if (ends := ends_of(heat))]
    if not both:
        nothing = empty(f"no {MEASURES[found.measure]} changes")
        return nothing, nothing
    ends = min(low for low, _ in both), max(high for _, high in both)
    unit = _unit(found.measure)
    words = [[_change(cell, unit) for cell in row] for row in found.cells]
    signs = [[cell.sign for cell in row] for row in found.cells]
    return (
        _box(found.now, found.now.words(unit), ends, scheme),
        _box(found.planned, words, ends, scheme, signs),
    )


def ends_of(heat: HeatMap) -> Ends | None:
    """Least and greatest of the known values; None: none is known. The sum of the other topics is
    left out: it would make all topics pale."""
    places = [place for place, topic in enumerate(heat.topics) if topic != REST]
    known = [row[place] for row in heat.values for place in places if row[place] > 0]
    known = known or [value for row in heat.values for value in row if value > 0]
    return (min(known), max(known)) if known else None


def shares(heat: HeatMap, ends: Ends) -> NDArray[np.float64]:
    """Where on the scale (a logarithmic one, 0 to 1) each cell is; NaN: it is empty."""
    values = np.array(heat.values, np.float64)
    low, high = np.log(ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        place = (np.log(values) - low) / (high - low) if high > low else values * 0 + 0.5
    return np.where(values > 0, np.clip(place, 0, 1), np.nan)


def _change(cell: PlanCell, unit: Callable[[float], str]) -> str:
    if not cell.sign:
        return unit(cell.after) if cell.after else ""
    change = f"{unit(cell.before)} → {unit(cell.after)} ({cell.difference})"
    return f"{_SIGN_WORDS[cell.sign]}: {change}"


def _unit(measure: str) -> Callable[[float], str]:
    if measure == "size_bytes":
        return text.bytes_text
    return text.byte_rate_text if measure == "in_bytes_per_s" else text.count_text


def _box(
    heat: HeatMap,
    words: Sequence[Sequence[str]],
    ends: Ends,
    scheme: str,
    signs: Sequence[Sequence[str]] = (),
) -> html.Div:
    colors, unit = palette(scheme), _unit(heat.measure)
    brokers = [str(broker) for broker in heat.brokers]
    label = (
        f"{MEASURES[heat.measure]} of {text.plural_text(len(heat.topics), 'topic')} on "
        f"{text.plural_text(len(brokers), 'broker')}: {unit(ends[0])} to {unit(ends[1])} a cell"
    )
    plot = html.Div(
        [
            html.Img(src=picture_of(shares(heat, ends), colors.heat), alt=label),
            html.Div(
                className="heat-gaps",
                style={"--columns": len(heat.topics), "--rows": len(brokers)},
            ),
            *(
                _signs(signs)
                if max(len(brokers) - ROW_NAMES_MAX, len(heat.topics) - COLUMN_NAMES_MAX) > 0
                else [_values(heat, ends, colors, signs)]
            ),
        ],
        className="heat-plot",
        **attributes(
            {
                "data-topics": "\t".join(heat.topics),
                "data-brokers": "\t".join(brokers),
                "data-words": "\t".join(it for row in words for it in row),
            }
        ),
    )
    box = html.Div(
        [
            html.Div(_names(brokers, ROW_NAMES_MAX), className="heat-rows"),
            plot,
            _scale(ends, unit, colors),
            html.Div(_names(heat.topics, COLUMN_NAMES_MAX), className="heat-columns"),
        ],
        className="heat",
    )
    return still(box, className="heat-box")


def _names(names: Sequence[str], most: int) -> list[html.Span]:
    """One place each, evenly; of many only every so many are written."""
    step = math.ceil(len(names) / most)
    return [
        html.Span(html.B(_short(name)) if place % step == 0 else None)
        for place, name in enumerate(names)
    ]


def _short(name: str) -> str:
    most = NAME_CHARACTERS_MAX
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _scale(ends: Ends, unit: Callable[[float], str], colors: Palette) -> html.Div:
    low, high = ends
    places = [high, math.sqrt(low * high), low] if high > 2 * low else [high, low]
    labels = [unit(place) for place in places] if high > low else [unit(high)]
    ground = f"linear-gradient(to top, {', '.join(colors.heat)})"
    return html.Div(
        [
            html.Div(className="heat-colors", style={"background": ground}),
            html.Div([html.Span(label) for label in labels], className="heat-ends"),
        ],
        className="heat-scale",
    )


def _values(heat: HeatMap, ends: Ends, colors: Palette, signs: Sequence[Sequence[str]]) -> html.Div:
    """Values in their cells, which show them where they are wide enough; a sign always."""
    unit, last = _unit(heat.measure), len(colors.heat) - 1
    words, found = heat.words(unit), shares(heat, ends)
    cells = []
    for row, column in product(range(len(heat.brokers)), range(len(heat.topics))):
        word, share = words[row][column], found[row, column]
        sign = signs[row][column] if signs else ""
        ink = {} if math.isnan(share) else {"color": _ink(colors.heat[round(share * last)])}
        cells.append(_value(word or (unit(0) if sign else ""), sign, ink))
    return html.Div(cells, className="heat-values", style={"--columns": len(heat.topics)})


def _value(word: str, sign: str, ink: dict[str, str]) -> html.Span:
    if not sign:
        return html.Span(html.B(word, style=ink), className="heat-value")
    mark = html.I(sign, className=f"heat-sign {_SIGN_WORDS[sign]}")
    return html.Span([mark, html.B(word, style=ink)], className="heat-value changed")


def _ink(ground: str) -> str:
    """Black or white, whichever reads better on this colour (WCAG's relative luminance)."""
    parts = (int(ground[at : at + 2], 16) / 255 for at in (1, 3, 5))
    light = [part / 12.92 if part <= 0.04 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return "#000" if np.dot(light, (0.2126, 0.7152, 0.0722)) > 0.179 else "#fff"


def _signs(signs: Sequence[Sequence[str]]) -> list[html.Span]:
    return [
        html.Span(
            sign,
            className=f"heat-sign {_SIGN_WORDS[sign]}",
            style={
                "left": f"{(column + 0.5) / len(row):.2%}",
                "top": f"{(place + 0.5) / len(signs):.2%}",
            },
        )
        for place, row in enumerate(signs)
        for column, sign in enumerate(row)
        if sign
    ]
