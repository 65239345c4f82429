"""``@``: a moment as people write it, and moments that cannot be shown."""

import time

import pytest

from tests.support.settle import settle
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.screens.dialogs.time import TimeScreen
from tui.terminal_session import Services
from tui.widgets.top_bar import TopBar


async def test_a_time_of_day_is_gone_back_to(services: Services) -> None:
    at_s = NOW_MS // 1000 - 120
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(TopBar)), "the topics")
        await pilot.press("at", *time.strftime("%H:%M:%S", time.localtime(at_s)), "enter")
        await settle(pilot, lambda: app.session.at_ms == at_s * 1000, "that moment")
        assert "you are looking at" in str(app.screen.query_one(TopBar).render())


async def test_a_moment_to_come_is_refused_where_it_is_typed(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(TopBar)), "the topics")
        await pilot.press("at", *"2031-01-01", "enter")
        assert isinstance(app.screen, TimeScreen)
        assert "in the future" in str(app.screen.query_one("#time-problem").render())
        assert app.session.at_ms is None


@pytest.mark.parametrize(
    ("at", "why"), [("2031-01-01", "in the future"), ("2020-01-01", "before history begins")]
)
async def test_a_link_to_a_moment_that_is_not_kept_says_why(
    services: Services, at: str, why: str
) -> None:
    app = PartiscopeApp(services, path=f"topics?at={at}")
    async with app.run_test(size=(80, 24)) as pilot:
        told = app._notifications
        await settle(pilot, lambda: any(why in note.message for note in told), "why not")
        assert app.session.at_ms is None
        assert "you are looking at" not in str(app.screen.query_one(TopBar).render())
