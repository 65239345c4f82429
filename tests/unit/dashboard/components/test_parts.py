"""Small parts of the page."""

from control.views.tables.rows import Cell
from dashboard.components.parts import tile


def test_a_unit_stays_on_the_line_of_its_number() -> None:
    value = tile("estimated", Cell(1.8, "≈ 0.3 s – 1.8 s, 40 % of disk")).children[1].children

    gap = "\N{NO-BREAK SPACE}"
    assert value.children == f"≈ 0.3{gap}s – 1.8{gap}s, 40{gap}% of disk"
