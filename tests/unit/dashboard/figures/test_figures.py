"""Figures are valid for plotly and show what the rows say."""

import math
from typing import Any

import plotly.graph_objects as go
import pytest

from control.model.ids import TopicPartition
from control.planner.ghost import KeptPlan
from control.planner.goals import PlanRequest
from control.planner.optimizer import plan
from control.views import snapshot as views
from control.views.errors import StoreUnreadableError
from control.views.ghost import ghost_map
from control.views.overview import HeatMap
from control.views.plans import Offer
from control.views.series import Series
from control.views.snapshot import OperatorSnapshot, build_snapshot
from dashboard.figures import brokers, ghost, heat, latency, lines, moves, segments
from dashboard.figures.base import Figure, nice_ticks
from dashboard.figures.drawing import all_drawn
from tests.unit.control import clusters
from tests.unit.control.clusters import MIB, NOW_MS
from tests.unit.control.planner.clusters import seeded

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
                    segment_bytes=[5 * MIB, 2 * MIB, MIB], active_base_offset=70,
                ),
            ],
        ),
        version=1,
        now_ms=NOW_MS,
    )  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("measure", brokers.MEASURES)
def test_broker_bars(snapshot: OperatorSnapshot, measure: str, scheme: str) -> None:
    figure = valid(brokers.broker_bars(views.broker_page(snapshot).rows, measure, scheme))

    bars = [item for item in figure["data"] if item["type"] == "bar"]
    assert all(item["x"] == ["101", "102", "103"] for item in bars)
    assert figure["layout"]["shapes"][1]["type"] == "line"


def test_broker_bars_stack_leaders_and_followers_and_hatch_the_uneven(
    snapshot: OperatorSnapshot,
) -> None:
    rows = views.broker_page(snapshot).rows
    stacked = brokers.broker_bars(rows, "replicas", "light")["data"]
    by_bytes = brokers.broker_bars(rows, "size_bytes", "light")

    assert [item["y"] for item in stacked[:2]] == [[2, 0, 0], [0, 1, 0]]
    (bars,) = (item for item in by_bytes["data"] if item["type"] == "bar")
    assert bars["y"] == [12 * MIB, 4 * MIB, 0]
    assert bars["marker"]["pattern"]["shape"] == ["/", "/", "/"]
    assert by_bytes["layout"]["shapes"][1]["y0"] == pytest.approx(16 * MIB / 3)


@pytest.mark.parametrize("measure", [name for name in heat.MEASURES if name != "lag"])
def test_heat_map_is_on_a_log_scale_and_leaves_gaps(
    snapshot: OperatorSnapshot, measure: str
) -> None:
    figure = valid(heat.heat_figure(snapshot.heat_map(measure), "dark"))

    (cells,) = figure["data"]
    assert cells["y"] == ["101", "102", "103"]
    assert cells["z"][2] == [None]
    assert cells["z"][0] != [None]


def test_a_heat_map_of_nothing_says_so(snapshot: OperatorSnapshot) -> None:
    figure = valid(heat.heat_figure(snapshot.heat_map("lag"), "dark"))

    assert figure["layout"]["annotations"][0]["text"] == "no lag anywhere"


def test_heat_map_of_one_value() -> None:
    one = HeatMap(measure="replicas", brokers=[1], topics=["t"], values=[[3.0]])

    (cells,) = valid(heat.heat_figure(one, "light"))["data"]
    assert cells["z"] == [[pytest.approx(math.log10(3))]]
    assert cells["customdata"] == [["3"]]


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
    (bars,) = valid(latency.latency_histogram([(0.25, 0), (0.5, 3), (1.0, 4)], "light"))["data"]

    assert (bars["x"], bars["y"]) == (["≤ 0.5 ms", "≤ 1.0 ms"], [3, 4])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_to_show_is_said(scheme: str) -> None:
    nothing = HeatMap(measure="replicas", brokers=[], topics=[], values=[])
    for figure in (
        brokers.broker_bars([], "replicas", scheme),
        heat.heat_figure(nothing, scheme),
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
    assert points["customdata"][1] == ["4.0 MiB", "n/a"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_plan_on_the_map_has_one_scale_and_signs(scheme: str) -> None:
    before = seeded(5, joined=3)
    made = plan(before, PlanRequest(alternatives=1))
    found = ghost_map(KeptPlan(plan=made, chosen=0, values={}), "replicas")
    now = valid(ghost.now_figure(found, scheme))
    planned = valid(ghost.planned_figure(found, scheme))
    assert [now["data"][0][end] for end in ("zmin", "zmax")] == [
        planned["data"][0][end] for end in ("zmin", "zmax")
    ]
    grows, shrinks = planned["data"][1:]
    assert {"110", "111", "112"} <= set(grows["y"])
    assert not {"110", "111", "112"} & set(shrinks["y"])
    assert all("(+" in words for words in grows["customdata"])
    assert all("(−" in words for words in shrinks["customdata"])
