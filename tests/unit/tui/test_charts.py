"""Charts: their stretch of time by keys, and what was done to the cluster meanwhile."""

from dataclasses import replace

from control.move.journal_lines import JournalLine
from control.views.series import Series, Span
from control.views.tables.journal import Mark
from tests.support.picture import picture
from tests.support.settle import settle
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.screens.base import ViewScreen
from tui.terminal_session import ChartRange, Services
from tui.widgets.chart import MARK, Frame

MINUTE_MS = 60_000
DONE = JournalLine(
    at_ms=NOW_MS - MINUTE_MS,
    who="ada@ops",
    what="create topic orders",
    reason="",
    outcome="done",
    operation_id="do-1",
)


def _frame(*marks: Mark) -> Frame:
    return Frame(
        span=Span(since_ms=NOW_MS - 10 * MINUTE_MS, until_ms=NOW_MS), title="", marks=marks
    )


def test_a_mark_stands_where_its_time_is() -> None:
    at_ms = range(NOW_MS - 10 * MINUTE_MS, NOW_MS, MINUTE_MS)
    series = Series(name="in", unit="bytes/s", at_ms=at_ms, values=[1.0] * 10)
    line = _frame(Mark(at_ms=NOW_MS - 150_000, words="")).line(series, 20, "cyan")
    assert line.plain == "█" * 15 + MARK + "█" * 4


def test_the_newest_marks_are_told_as_far_as_the_line_goes() -> None:
    old, new = Mark(at_ms=NOW_MS - 9, words="old"), Mark(at_ms=NOW_MS, words="new")
    assert _frame().legend(NOW_MS, 80) == []
    (line,) = _frame(old, new).legend(NOW_MS, 80)
    assert line.plain.index("new") < line.plain.index("old")
    (line,) = _frame(old, new).legend(NOW_MS, 15)
    assert "new" in line.plain
    assert "old" not in line.plain
    (line,) = _frame(Mark(at_ms=NOW_MS, words="x" * 99)).legend(NOW_MS, 20)
    assert line.cell_len == 20


def test_zooming_goes_through_the_ranges_and_stops_at_their_ends() -> None:
    stretch = ChartRange()
    assert not stretch.zoom(-1)
    assert stretch.zoom(1)
    assert stretch.title == "last 1 hour"
    stretch.take("3h")  # of a link: none of those to choose from
    assert stretch.zoom(-1)
    assert stretch.words == "1h"
    stretch.take("30d")
    assert not stretch.zoom(1)


async def test_keys_choose_how_much_charts_show_and_when_they_end(services: Services) -> None:
    app = PartiscopeApp(replace(services, journal=lambda: [DONE]))
    async with app.run_test(size=(120, 50)) as pilot:
        await settle(pilot, lambda: "create topic orders (done)" in picture(app), "the mark")
        await pilot.press("minus")
        await settle(pilot, lambda: "last 1 hour" in picture(app), "an hour")
        assert isinstance(app.screen, ViewScreen)
        assert app.session.link_of(app.screen.path).endswith("range=1h")
        await pilot.press("plus")
        await settle(pilot, lambda: "last 10 minutes" in picture(app), "ten minutes")
        app.session.range.take("2m")
        await pilot.press("left_square_bracket")
        await settle(pilot, lambda: app.session.at_ms == NOW_MS - MINUTE_MS, "a minute ago")
        await pilot.press("right_square_bracket")
        await settle(pilot, lambda: app.session.at_ms is None, "now")
