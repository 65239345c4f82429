"""Segments of a partition: one bar per file, the active one apart."""

from collections.abc import Sequence

from control.views import format as text
from control.views.tables.rows import Row
from dashboard.figures.base import Figure, empty_figure, figure, nice_ticks
from dashboard.theme import palette


def segment_bars(rows: Sequence[Row], scheme: str) -> Figure:
    """Oldest on the left; the active segment is hatched, for it still grows."""
    if not rows:
        return empty_figure("n/a: only bundled brokers report segments", scheme)
    colors = palette(scheme)
    sizes = [float(row.size_bytes.value or 0) for row in rows]
    ticks = nice_ticks(max(sizes), base=1024)
    active = [row.state.text == "active" for row in rows]
    bars = {
        "type": "bar",
        "x": [str(row.number.value) for row in rows],
        "y": sizes,
        "customdata": [
            f"{row.size_bytes.text}, {row.state.text}, base offset {row.base_offset.text}"
            for row in rows
        ],
        "hovertemplate": "segment %{x}: %{customdata}<extra></extra>",
        "marker": {
            "color": [colors.leader if item else colors.follower for item in active],
            "pattern": {
                "shape": ["/" if item else "" for item in active],
                "bgcolor": colors.leader,
                "fgcolor": colors.surface,
                "size": 6,
                "solidity": 0.3,
            },
        },
    }
    return figure(
        [bars],
        scheme,
        keep="segments",
        bargap=max(0.2, 1 - 0.14 * len(rows)),
        showlegend=False,
        xaxis={"type": "category", "showgrid": False},
        yaxis={
            "tickvals": ticks,
            "ticktext": [text.bytes_text(tick) for tick in ticks],
            "range": [0, max(sizes) * 1.08 or 1],
        },
    )
