"""Base of all figures: a figure is a dict as plotly.js takes it.

Built as dicts, not by plotly's classes: these validate every attribute at run time, which the
tests do once instead, and cost most of a second to import.
"""

import html
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from dashboard.theme import Palette, palette

Figure = dict[str, Any]

HEIGHT: Final = 260
BAND: Final = 0.10
"""Within this share of the mean a broker counts as even."""


def plain(name: str) -> str:
    """A name as a chart shows it, whatever is in it: Plotly takes texts for HTML with links, and
    fills in what stands between ``%{`` and ``}``."""
    return html.escape(name, quote=False).replace("%{", "%&#123;")


def figure(data: Sequence[dict[str, Any]], scheme: str, *, keep: str, **layout: Any) -> Figure:
    """A figure with the page's fonts and colours.

    ``keep`` names what is shown: as long as it stays the same, a redraw keeps zoom and the
    hidden lines.
    """
    colors = palette(scheme)
    axis = axis_style(colors)
    base: dict[str, Any] = {
        "autosize": True,
        "margin": {"l": 64, "r": 12, "t": 26, "b": 32},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": colors.text, "size": 12, "family": "system-ui, sans-serif"},
        "hoverlabel": {
            "bgcolor": colors.surface,
            "bordercolor": colors.line,
            "font": {"color": colors.text},
        },
        "legend": {"orientation": "h", "yref": "container", "y": 1, "yanchor": "top", "x": 0},
        "uirevision": keep,
        "xaxis": axis,
        "yaxis": {**axis, "rangemode": "tozero"},
        "dragmode": False,
    }
    if layout.get("showlegend") is False:
        base["margin"] = {**base["margin"], "t": 10}
    for name, value in layout.items():
        base[name] = {**base[name], **value} if isinstance(base.get(name), dict) else value
    return {"data": list(data), "layout": base}


def empty_figure(words: str, scheme: str) -> Figure:
    """No axes, one sentence."""
    colors = palette(scheme)
    return figure(
        [],
        scheme,
        keep="empty",
        xaxis={"visible": False},
        yaxis={"visible": False},
        annotations=[
            {
                "text": plain(words),
                "showarrow": False,
                "xref": "paper",
                "yref": "paper",
                "x": 0.5,
                "y": 0.5,
                "font": {"color": colors.muted, "size": 14},
            }
        ],
    )


def axis_style(colors: Palette) -> dict[str, Any]:
    """Quiet axes."""
    return {
        "gridcolor": colors.line,
        "linecolor": colors.line,
        "zerolinecolor": colors.line,
        "fixedrange": True,
        "automargin": True,
        "tickfont": {"color": colors.muted},
    }


def times(at_ms: Sequence[int]) -> list[str]:
    """Times as plotly takes them, in this machine's zone (as all text of the screens)."""
    return [
        datetime.fromtimestamp(at / 1000, tz=UTC).astimezone().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        for at in at_ms
    ]


def nice_ticks(largest: float, *, base: int, count: int = 4) -> list[float]:
    """Round steps from 0 up to ``largest``: of 1024 for bytes, of 1000 for counts.

    Worked example: 3.4 MiB with base 1024 gives 0, 1, 2 and 3 MiB.
    """
    if largest <= 0:
        return [0.0]
    unit = 1.0
    while largest / unit >= base:
        unit *= base
    raw = largest / unit / count
    power = 10.0 ** _floor_log10(raw)
    step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= raw)
    if step * unit < 1:
        step = 1.0 / unit
    ticks = [0.0]
    while ticks[-1] + step * unit <= largest * 1.001:
        ticks.append(ticks[-1] + step * unit)
    return ticks


def _floor_log10(value: float) -> int:
    power = 0
    while value >= 10:
        value, power = value / 10, power + 1
    while 0 < value < 1:
        value, power = value * 10, power - 1
    return power
