"""Bars of the brokers: heights, the mean, what is uneven, and that each leads to its broker."""

import re
from typing import Any

import pytest

from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import build_snapshot
from control.views.tables.rows import Row
from dashboard.components import bars
from dashboard.components.bars import ROOM, broker_bars
from dashboard.components.markup import MARKUP
from tests.unit.control import clusters
from tests.unit.control.clusters import MIB, NOW_MS
from tests.unit.dashboard.page_context import words_of


@pytest.fixture
def rows() -> tuple[Row, ...]:
    """12 MiB, 4 MiB and nothing; 2, 1 and no replicas."""
    tables = clusters.tables(
        brokers=[clusters.broker(101), clusters.broker(102), clusters.broker(103)],
        partitions=[
            clusters.partition("t", 0, [101, 102], size_bytes=4 * MIB),
            clusters.partition("t", 1, [101], size_bytes=8 * MIB),
        ],
    )
    return views.broker_page(build_snapshot(tables, version=1, now_ms=NOW_MS)).rows


def parts(box: Any, kind: str) -> list[float]:
    """Heights of all bars of a kind, as shares of the largest value."""
    found = re.findall(
        rf'class="bar-part {kind}[^"]*" style="height:([0-9.]+)%"', getattr(box, MARKUP)
    )
    return [float(height) / 100 * ROOM for height in found]


def test_bars_are_as_tall_as_what_they_stand_for(rows: tuple[Row, ...]) -> None:
    assert parts(broker_bars(rows, "size_bytes"), "leader") == pytest.approx(
        [1, 1 / 3, 0], abs=1e-3
    )
    stacked = broker_bars(rows, "replicas")
    assert parts(stacked, "leader") == pytest.approx([1, 0, 0], abs=1e-3)
    assert parts(stacked, "follower") == pytest.approx([0, 0.5, 0], abs=1e-3)
    assert "leaders followers" in words_of(stacked)


def test_each_bar_leads_to_its_broker_and_tells_its_figure(rows: tuple[Row, ...]) -> None:
    drawn = getattr(broker_bars(rows, "size_bytes"), MARKUP)

    assert re.findall(r'href="(/brokers/\d+)"', drawn) == [
        f"/brokers/{it}" for it in (101, 102, 103)
    ]
    assert re.search(r'data-tip="broker 101: bytes . 12.0 MiB, .125 % against the mean"', drawn)
    assert drawn.count("uneven") == 3, "hatched: colour never stands alone"


def test_a_broker_that_is_down_tells_so_instead_of_a_skew() -> None:
    tables = clusters.tables(
        brokers=[clusters.broker(101), clusters.broker(102, is_fenced=True)],
        partitions=[clusters.partition("t", 0, [101, 102], isr=[101])],
    )
    rows = views.broker_page(build_snapshot(tables, version=1, now_ms=NOW_MS)).rows
    drawn = getattr(broker_bars(rows, "leaders"), MARKUP)
    (told,) = re.findall(r'data-tip="(broker 102[^"]*)"', drawn)
    assert "down since" in told
    assert "100 %" not in told


@pytest.mark.parametrize("measure", bars.MEASURES)
def test_the_mean_is_told_with_its_unit(rows: tuple[Row, ...], measure: str) -> None:
    assert "band ±10 %" in words_of(broker_bars(rows, measure))
    assert "no broker" in words_of(broker_bars([], measure))
