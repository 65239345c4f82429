"""Figures are valid for plotly and show what the rows say."""

import html
import json
from typing import Any

import plotly.graph_objects as go
import pytest

from control.model.ids import TopicPartition
from control.views.plans import Offer
from control.views.series import Series
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.snapshots.store import StoreUnreadableError
from dashboard.figures import latency, lines, moves, segments
from dashboard.figures.base import Figure, empty_figure, nice_ticks
from dashboard.figures.drawing import all_drawn
from tests.unit.control import clusters
from tests.unit.control.clusters import MIB, NOW_MS

SCHEMES = ("light", "dark")


def valid(figure: dict[str, Any]) -> dict[str, Any]:
    """Plotly's own validation of every attribute."""
    go.Figure(figure)
    return figure


@pytest.fixture
def snapshot() -> OperatorSnapshot:
    return build_snapshot(
        clusters.tables(
            brokers=[clusters.broker(101), clusters.broker(102), clusters.broker(103)],
            partitions=[
                clusters.partition("t", 0, [101, 102], size_bytes=4 * MIB),
                clusters.partition(
                    "t", 1, [101], size_bytes=8 * MIB, segments=3,
                    segment_bytes=[5 * MIB, 2 * MIB, MIB], segment_offsets=[0, 40, 70],
                ),
            ],
        ),
        version=1,
        now_ms=NOW_MS,
    )  # fmt: skip


def test_lines_keep_gaps_and_tell_values_with_units() -> None:
    line = Series(name="in", unit="bytes/s", at_ms=[0, 1000, 2000], values=[1024.0, None, 2048.0])

    figure = valid(lines.lines([line], "light", keep="x"))

    (drawn,) = figure["data"]
    assert drawn["y"] == [1024.0, None, 2048.0]
    assert drawn["customdata"] == ["1.0 KiB/s", "", "2.0 KiB/s"]
    assert drawn["connectgaps"] is False
    assert figure["layout"]["yaxis"]["ticktext"][-1] == "2.0 KiB/s"


def test_segments_are_one_bar_per_file(snapshot: OperatorSnapshot) -> None:
    rows = views.segment_rows(snapshot, TopicPartition("t", 1))

    (bars,) = valid(segments.segment_bars(rows, "dark"))["data"]
    assert bars["y"] == [5 * MIB, 2 * MIB, MIB]
    assert bars["marker"]["pattern"]["shape"] == ["", "", "/"]


def test_now_and_planned_share_one_scale() -> None:
    now = valid(moves.loads({1: 10.0, 2: 0.0}, 10.0, "light", is_plan=False))
    planned = valid(moves.loads({1: 5.0, 2: 5.0}, 10.0, "light", is_plan=True))

    assert now["layout"]["yaxis"]["range"] == planned["layout"]["yaxis"]["range"]
    assert now["data"][0]["text"] == ["+100 %", "−100 %"]


def test_latency_histogram_leaves_out_empty_buckets_in_front() -> None:
    (bars,) = valid(latency.latency_histogram([(0.25, 0), (0.5, 1), (1.0, 4)], "light"))["data"]
    assert list(bars["customdata"]) == ["1 record", "4 records"]
    assert (bars["x"], bars["y"]) == (["≤ 0.5 ms", "≤ 1.0 ms"], [1, 4])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_to_show_is_said(scheme: str) -> None:
    for figure in (
        lines.lines([], scheme, keep="x"),
        segments.segment_bars([], scheme),
        latency.latency_histogram([], scheme),
        moves.loads({}, 0, scheme, is_plan=True),
    ):
        valid(figure)
        assert figure["layout"]["annotations"][0]["text"]


def test_ticks_are_round_in_their_base() -> None:
    assert nice_ticks(3.4 * MIB, base=1024) == [0, MIB, 2 * MIB, 3 * MIB]
    assert nice_ticks(45, base=1000) == [0, 20, 40]
    assert nice_ticks(0, base=1000) == [0]
    assert nice_ticks(2, base=1000) == [0, 1, 2]


def test_a_store_that_cannot_be_read_is_said_in_every_chart() -> None:
    def fails() -> tuple[Figure, ...]:
        raise StoreUnreadableError("the store", why="gone", what_next="look")

    found = all_drawn(fails, 2, "dark")

    assert len(found) == 2
    assert "cannot be read" in found[0]["layout"]["annotations"][0]["text"]


def test_alternatives_are_points_with_a_line_to_their_proven_minimum() -> None:
    even, few = 10 * MIB, 4 * MIB
    offers = [
        Offer(name="even", moved_bytes=even, lower_bound_bytes=8 * MIB, fullest_percent=1),
        Offer(name="few", moved_bytes=few, lower_bound_bytes=None, fullest_percent=9),
    ]

    (points,) = valid(moves.trade_off(offers, "dark"))["data"]

    assert points["x"] == [10 * MIB, 4 * MIB]
    assert points["y"] == [1, 9]
    assert points["error_x"]["arrayminus"] == [2 * MIB, 0.0]
    assert points["customdata"][1] == ["4.0 MiB", "n/a", "few"]
    assert points["text"] == ["even", "few"]


@pytest.mark.parametrize(
    ("points", "shown"),
    [
        ([(10, 50), (200, 50)], [("placed", "top center"), ("minimal", "top center")]),
        ([(100, 50), (110, 50)], [("placed", "top center"), ("minimal", "bottom center")]),
        ([(100, 50)] * 3, [("placed", "top center"), ("minimal", "bottom center"),
                           ("even", "middle right")]),
        ([(100, 50)] * 5, [("placed, few", "top center"), ("minimal", "bottom center"),
                           ("even", "middle right"), ("tight", "middle left"), ("", "top center")]),
    ],
)  # fmt: skip
def test_names_of_near_points_do_not_lie_on_each_other(
    points: list[tuple[float, float]], shown: list[tuple[str, str]]
) -> None:
    names = ["placed", "minimal", "even", "tight", "few"]
    assert moves.labels(points, names[: len(points)]) == shown


def test_a_line_keeps_its_colour_whatever_its_rank() -> None:
    colors = ["a", "b", "c", "d", "e"]
    names = ["orders", "audit", "payments"]
    first = dict(zip(names, lines.colors_by_name(names, colors), strict=True))
    turned = dict(zip(names[::-1], lines.colors_by_name(names[::-1], colors), strict=True))
    assert first == turned
    assert len(set(first.values())) == len(names)
    many = lines.colors_by_name([str(number) for number in range(12)], colors)
    assert set(many) == set(colors)


LINK = '<a href="https://evil.example">session expired: sign in</a>'


@pytest.mark.parametrize("name", [LINK, "<b>x", "%{y} & %{customdata}", "a&lt;b"])
def test_a_name_stays_a_name_in_a_chart(name: str) -> None:
    line = Series(name=name, unit="bytes/s", at_ms=[0, 1000], values=[1.0, 2.0], high=[9.0, 9.0])
    for figure in (
        valid(lines.lines([line], "light", keep="x")),
        valid(empty_figure(f"no group {name}", "light")),
    ):
        text = json.dumps(figure)
        assert "<a" not in text
        assert "<b" not in text
        assert "%{y}" not in text
    for drawn in lines.lines([line], "light", keep="x")["data"]:
        assert html.unescape(drawn["name"]).removesuffix(" (peak)") == name
        assert name not in drawn["hovertemplate"]
