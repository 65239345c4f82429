"""How the columns of a table share a line."""

from hypothesis import given
from hypothesis import strategies as st

from control.views.tables.column import Column
from partiscope.cli.shared.tables import GAP, figure, fitted, words

COLUMNS = st.builds(
    lambda rank, is_long, width: (
        words("c", rank=rank, is_long=True) if is_long else figure("c", rank=rank),
        width,
    ),
    st.integers(1, 3),
    st.booleans(),
    st.integers(1, 250),
)


@given(st.lists(COLUMNS, min_size=1, max_size=16), st.integers(1, 300))
def test_a_line_is_never_wider_than_it_may_be(made: list[tuple[Column, int]], width: int) -> None:
    columns, widths = [each for each, _ in made], [size for _, size in made]
    shown = fitted(columns, widths, width)
    assert sum(shown.values()) + GAP * (len(shown) - 1) <= width
    assert 0 in shown, "the row's name"
    assert list(shown) == sorted(shown)
    assert all(0 < size <= widths[at] for at, size in shown.items())
    cut = [at for at, size in shown.items() if size < widths[at]]
    assert all(columns[at].is_long for at in cut if at)
    if sum(widths) + GAP * (len(widths) - 1) <= width:
        assert shown == dict(enumerate(widths))
    assert list(fitted(columns, widths, width, is_chosen=True)) == list(range(len(columns)))


def test_long_texts_give_way_before_a_column_goes_and_the_least_goes_first() -> None:
    columns = [words("topic", is_long=True), figure("lag"), figure("age", rank=3)]
    assert fitted(columns, [60, 10, 10], 84) == {0: 60, 1: 10, 2: 10}
    assert fitted(columns, [60, 10, 10], 60) == {0: 36, 1: 10, 2: 10}
    assert fitted(columns, [60, 10, 10], 36) == {0: 24, 1: 10}
