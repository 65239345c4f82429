"""Acknowledgement times while producing, as a histogram."""

from collections.abc import Sequence

from control.views import format as text
from dashboard.figures.base import Figure, empty_figure, figure
from dashboard.theme import palette


def latency_histogram(buckets: Sequence[tuple[float, int]], scheme: str) -> Figure:
    """``buckets``: (upper edge in ms, records), edges doubling."""
    if not buckets:
        return empty_figure("acknowledgement times appear here", scheme)
    first = next((place for place, (_, count) in enumerate(buckets) if count), 0)
    shown = buckets[first:]
    bars = {
        "type": "bar",
        "x": [f"≤ {text.latency_text(edge)}" for edge, _ in shown],
        "y": [count for _, count in shown],
        "hovertemplate": "%{x}: %{customdata}<extra></extra>",
        "customdata": [text.plural_text(count, "record") for _, count in shown],
        "marker": {"color": palette(scheme).leader},
    }
    return figure(
        [bars],
        scheme,
        keep="latency",
        bargap=max(0.15, 1 - 0.2 * len(shown)),
        showlegend=False,
        xaxis={"type": "category", "showgrid": False},
    )
