"""Lines of block characters: scale, gaps, widths, and that every value stands at its time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.views.series import Span
from tui.widgets.sparkline import BLOCKS, bar, sparkline

SPAN = Span(since_ms=1_000, until_ms=2_000)
POINTS = st.dictionaries(st.integers(0, 3_000), st.none() | st.floats(0, 1e12), max_size=200)


def test_the_highest_value_fills_the_line_and_a_gap_stays_empty() -> None:
    span = Span(since_ms=0, until_ms=40)
    assert sparkline([0, 10, 20, 30], [0.0, 1.0, None, 2.0], span, 4) == "▁▅ █"


def test_a_burst_survives_when_many_values_share_a_character() -> None:
    values: list[float | None] = [0.0] * 100
    values[37] = 9.0
    line = sparkline(range(1_000, 2_000, 10), values, SPAN, 10)
    assert line.index("█") == 3
    assert line.count("█") == 1


def test_few_values_fill_the_line_and_what_is_too_young_for_it_begins_where_it_began() -> None:
    assert sparkline([1_500, 1_700, 1_900], [1.0, 2.0, 2.0], SPAN, 10) == "     ▅▅███"


def test_figures_that_stopped_coming_are_seen_to_have_stopped() -> None:
    assert sparkline([1_000, 1_100, 1_200], [1.0, 1.0, 1.0], SPAN, 10) == "███       "


@given(POINTS, st.integers(0, 300))
def test_it_is_as_wide_as_asked(points: dict[int, float | None], width: int) -> None:
    at_ms = sorted(points)
    line = sparkline(at_ms, [points[at] for at in at_ms], SPAN, width)
    assert len(line) == width
    assert set(line) <= {*BLOCKS, " "}


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, ""), (0.5, "██"), (1.0, "████"), (2.0, "████"), (0.53125, "██▏")]
)
def test_bars(share: float, shown: str) -> None:
    assert bar(share, 4) == shown
