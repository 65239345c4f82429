"""Lines of block characters: scale, gaps, widths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.sparkline import BLOCKS, bar, sparkline

VALUES = st.lists(st.none() | st.floats(0, 1e12), max_size=200)


def test_the_highest_value_fills_the_line_and_a_gap_stays_empty() -> None:
    assert sparkline([0.0, 1.0, None, 2.0], 4) == "▁▅ █"


def test_a_burst_survives_when_many_values_share_a_character() -> None:
    values: list[float | None] = [0.0] * 100
    values[37] = 9.0
    assert sparkline(values, 10).count("█") == 1


@given(VALUES, st.integers(0, 300))
def test_it_is_never_wider_than_asked(values: list[float | None], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= {*BLOCKS, " "}


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, ""), (0.5, "██"), (1.0, "████"), (2.0, "████"), (0.53125, "██▏")]
)
def test_bars(share: float, shown: str) -> None:
    assert bar(share, 4) == shown
